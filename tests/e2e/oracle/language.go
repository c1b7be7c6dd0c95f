package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"
)

type expandQuestion struct{ Pattern, Template, Text string }

type expandAnswer struct {
	Matched bool   `json:"matched"`
	Name    string `json:"name"`
}

// expand names a series as prometheus-adapter does: the expansion of the template against the first match.
func expand(asked expandQuestion) (expandAnswer, error) {
	pattern, err := regexp.Compile(asked.Pattern)
	if err != nil {
		return expandAnswer{}, err
	}
	match := pattern.FindStringSubmatchIndex(asked.Text)
	if match == nil {
		return expandAnswer{}, nil
	}
	return expandAnswer{true, string(pattern.ExpandString(nil, asked.Template, asked.Text, match))}, nil
}

type searchQuestion struct {
	Pattern string
	Texts   []string
}

type searchAnswer struct {
	// Groups holds, for each text, the groups of the leftmost match; null where there is none, and for a group that
	// took no part.
	Groups [][]*string `json:"groups"`
	Names  []string    `json:"names"`
}

func search(asked searchQuestion) (searchAnswer, error) {
	pattern, err := regexp.Compile(asked.Pattern)
	if err != nil {
		return searchAnswer{}, err
	}
	found := make([][]*string, len(asked.Texts))
	for i, text := range asked.Texts {
		found[i] = groups(pattern, text)
	}
	return searchAnswer{found, pattern.SubexpNames()}, nil
}

func groups(pattern *regexp.Regexp, text string) []*string {
	match := pattern.FindStringSubmatchIndex(text)
	if match == nil {
		return nil
	}
	found := make([]*string, len(match)/2)
	for i := range found {
		if start := match[2*i]; start >= 0 {
			group := text[start:match[2*i+1]]
			found[i] = &group
		}
	}
	return found
}

// matcher tells which texts a matcher of Prometheus 3 takes: anchored at both ends, and `.` is any character.
func matcher(asked searchQuestion) ([]bool, error) {
	pattern, err := regexp.Compile("^(?s:" + asked.Pattern + ")$")
	if err != nil {
		return nil, err
	}
	matched := make([]bool, len(asked.Texts))
	for i, text := range asked.Texts {
		matched[i] = pattern.MatchString(text)
	}
	return matched, nil
}

type quoteQuestion struct{ Text string }

type quoteAnswer struct {
	Quoted  string `json:"quoted"`
	Pattern string `json:"pattern"`
}

func quote(asked quoteQuestion) (quoteAnswer, error) {
	return quoteAnswer{strconv.Quote(asked.Text), regexp.QuoteMeta(asked.Text)}, nil
}

type renderQuestion struct {
	Text string
	Data struct {
		Series            string
		LabelMatchers     string
		LabelValuesByName map[string]string
		GroupBy           string
		GroupBySlice      []string
	}
}

type renderAnswer struct {
	Output string `json:"output"`
	// Complaint tells that printf wrote what it misses into its text, such as %!d(string=x).
	Complaint bool `json:"complaint"`
}

// render executes a metricsQuery as prometheus-adapter does.
func render(asked renderQuestion) (renderAnswer, error) {
	return executed(asked.Text, asked.Data)
}

type labelQuestion struct{ Text, Group, Resource string }

// label executes a template of labels (`resources.template`) on a resource.
func label(asked labelQuestion) (renderAnswer, error) {
	return executed(asked.Text, struct{ Group, Resource string }{asked.Group, asked.Resource})
}

func executed(text string, data any) (renderAnswer, error) {
	complaint := false
	printf := func(format string, values ...any) string {
		formatted := fmt.Sprintf(format, values...)
		complaint = complaint || strings.Contains(formatted, "%!")
		return formatted
	}
	parsed, err := template.New("").Delims("<<", ">>").Funcs(template.FuncMap{"printf": printf}).Parse(text)
	if err != nil {
		return renderAnswer{}, err
	}
	var output limited
	done := make(chan error, 1)
	go func() { done <- parsed.Execute(&output, data) }()
	select {
	case err := <-done:
		return renderAnswer{output.String(), complaint}, err
	case <-time.After(longestExecution):
		// Nothing can stop it; it goes on until the program ends.
		return renderAnswer{}, errors.New("the template has no end")
	}
}

// longestExecution is for ranges over numbers such as 9223372036854775807; all other templates take microseconds.
const longestExecution = 5 * time.Second

// limited takes 1 MiB at most, so that no template fills the memory.
type limited struct{ strings.Builder }

func (l *limited) Write(piece []byte) (int, error) {
	if l.Len()+len(piece) > 1<<20 {
		return 0, errors.New("the output is longer than 1 MiB")
	}
	return l.Builder.Write(piece)
}
