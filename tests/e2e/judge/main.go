// The scheduler judge runs the filter plugins of kube-scheduler's default profile: one cluster with one pending pod a
// line comes in as JSON, and for each one line goes out that says which nodes can take the pod and why the others cannot.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"
)

func main() {
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	if err := serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scheduler judge:", err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	decoder := json.NewDecoder(bufio.NewReader(in))
	buffered := bufio.NewWriter(out)
	encoder := json.NewEncoder(buffered)
	for number := 1; ; number++ {
		var asked question
		if err := decoder.Decode(&asked); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("question %d: %w", number, err)
		}
		answer, err := judge(ctx, asked)
		if err != nil {
			return fmt.Errorf("question %d: %w", number, err)
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
		// Who asks may wait for this answer before the next question.
		if err := buffered.Flush(); err != nil {
			return err
		}
	}
}
