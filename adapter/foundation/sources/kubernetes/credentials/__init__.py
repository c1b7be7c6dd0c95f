"""Where kube-apiserver is, and with which credentials it is called."""
