"""vLLM's Model Runner V2 on a CPU, where `VLLM_USE_V2_MODEL_RUNNER=1` asks for it.

A GPU runs it by default, and on a CPU nothing does. Its kernels are Triton's, which has no backend
for a CPU: its interpreter runs them, and vLLM must believe in a driver before it is imported.
"""

import os
from types import SimpleNamespace

if os.environ.get("VLLM_USE_V2_MODEL_RUNNER") == "1":
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is declared
    from triton.backends import backends

    driver = SimpleNamespace(is_active=lambda: True)
    backends["cpu"] = SimpleNamespace(driver=driver, compiler=None)
