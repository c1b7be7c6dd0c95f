//go:build tools

// Package thanos names the program, so that `go mod tidy` keeps what it needs.
package thanos

import (
	_ "github.com/thanos-io/thanos/cmd/thanos"
)
