"""`smmd-bench doctor`: what of this machine and environment works, and how to mend the rest."""
