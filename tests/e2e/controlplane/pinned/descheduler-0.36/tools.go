//go:build tools

// Package descheduler names the program, so that `go mod tidy` keeps what it needs.
package descheduler

import (
	_ "sigs.k8s.io/descheduler/cmd/descheduler"
)
