"""The address of kube-apiserver, and the credentials with which it is called."""
