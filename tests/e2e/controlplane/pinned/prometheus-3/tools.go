//go:build tools

// Package prometheus names the programs, so that `go mod tidy` keeps what they need.
package prometheus

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
