// The oracle answers what Go's own libraries make of a text: one JSON object a line comes in, one goes out for each, in
// the same order. Tests compare the answers with this project's Python functions.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// answerer reads the fields it knows of a request and returns what is encoded as the answer.
// An error it returns is an answer too: the text is not accepted.
type answerer func(request []byte) (any, error)

var answerers = map[string]answerer{
	"duration":            answer(duration),
	"expand":              answer(expand),
	"label":               answer(label),
	"matcher":             answer(matcher),
	"names":               answer(names),
	"prometheus duration": answer(prometheusDuration),
	"quantity":            answer(quantity),
	"quote":               answer(quote),
	"regexp":              answer(search),
	"rules":               answer(rules),
	"selector":            answer(selector),
	"template":            answer(render),
}

// answer makes a function of a typed question into one of a line.
func answer[Question, Answer any](function func(Question) (Answer, error)) answerer {
	return func(request []byte) (any, error) {
		var question Question
		if err := json.Unmarshal(request, &question); err != nil {
			return nil, fatal{err}
		}
		return function(question)
	}
}

// fatal is a fault of who asks, not an answer.
type fatal struct{ error }

type refusal struct {
	Error string `json:"error"`
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	decoder := json.NewDecoder(bufio.NewReader(in))
	buffered := bufio.NewWriter(out)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	for {
		var request json.RawMessage
		if err := decoder.Decode(&request); err == io.EOF {
			return buffered.Flush()
		} else if err != nil {
			return err
		}
		reply, err := respond(request)
		if err != nil {
			return fmt.Errorf("%s: %w", request, err)
		}
		if err := encoder.Encode(reply); err != nil {
			return err
		}
	}
}

func respond(request []byte) (any, error) {
	var asked struct{ Op string }
	if err := json.Unmarshal(request, &asked); err != nil {
		return nil, err
	}
	function, known := answerers[asked.Op]
	if !known {
		return nil, fmt.Errorf("there is no op %q", asked.Op)
	}
	reply, err := function(request)
	if fault, ok := err.(fatal); ok {
		return nil, fault.error
	}
	if err != nil {
		return refusal{err.Error()}, nil
	}
	return reply, nil
}
