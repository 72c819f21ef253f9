"""Tasks, losses, engines, executors and reports by name, from any installed package or file.

In: a spec such as `smmd[sigma=2.0]`. Out: the plugin, its parameters, and what identifies it.
It may import `contracts` and `storage`.
"""
