"""The metrics APIs as kube-apiserver, the HPA and kubectl speak them."""
