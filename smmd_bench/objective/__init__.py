"""The training objective: cross-entropy in chunks plus a numeric auxiliary.

In: hidden states or logits, labels, and a bound loss. Out: the total with its gradients.
It may import `encoding` and what is below.
"""
