"""Which arguments the callables on torch's allow-list take, without calling them."""
