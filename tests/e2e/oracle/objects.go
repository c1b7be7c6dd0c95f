package main

import (
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

type quantityQuestion struct{ Text, Other string }

type quantityAnswer struct {
	Canonical string          `json:"canonical"`
	Format    resource.Format `json:"format"`
	// Exact is the amount as a plain decimal.
	Exact string `json:"exact"`
	Milli int64  `json:"milli"`
	// Compared and Sum are with the other quantity; -1, 0, 1.
	Compared int    `json:"compared"`
	Sum      string `json:"sum"`
}

func quantity(asked quantityQuestion) (quantityAnswer, error) {
	parsed, err := resource.ParseQuantity(asked.Text)
	if err != nil {
		return quantityAnswer{}, err
	}
	other, err := resource.ParseQuantity(asked.Other)
	if err != nil {
		return quantityAnswer{}, fatal{err}
	}
	exact, sum := parsed.DeepCopy(), parsed.DeepCopy()
	sum.Add(other)
	return quantityAnswer{
		Canonical: printed(parsed),
		Format:    parsed.Format,
		Exact:     exact.AsDec().String(),
		Milli:     parsed.MilliValue(),
		Compared:  parsed.Cmp(other),
		Sum:       printed(sum),
	}, nil
}

// printed returns the canonical text, past the one that a quantity keeps from when it was read.
func printed(q resource.Quantity) string {
	number, suffix := q.CanonicalizeBytes(make([]byte, 0, 64))
	return string(number) + string(suffix)
}

type selectorQuestion struct {
	Text   string
	Labels []labels.Set
}

type selectorAnswer struct {
	Canonical    string        `json:"canonical"`
	Matches      []bool        `json:"matches"`
	Requirements []requirement `json:"requirements"`
}

type requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

func selector(asked selectorQuestion) (selectorAnswer, error) {
	parsed, err := labels.Parse(asked.Text)
	if err != nil {
		return selectorAnswer{}, err
	}
	answer := selectorAnswer{Canonical: parsed.String(), Matches: []bool{}, Requirements: []requirement{}}
	for _, set := range asked.Labels {
		answer.Matches = append(answer.Matches, parsed.Matches(set))
	}
	requirements, _ := parsed.Requirements()
	for _, found := range requirements {
		values := append([]string{}, found.ValuesUnsorted()...)
		answer.Requirements = append(answer.Requirements, requirement{found.Key(), string(found.Operator()), values})
	}
	return answer, nil
}

type durationQuestion struct{ Text string }

type durationAnswer struct {
	Nanoseconds int64  `json:"nanoseconds"`
	Printed     string `json:"printed"`
}

func duration(asked durationQuestion) (durationAnswer, error) {
	parsed, err := time.ParseDuration(asked.Text)
	return durationAnswer{parsed.Nanoseconds(), parsed.String()}, err
}

func prometheusDuration(asked durationQuestion) (durationAnswer, error) {
	parsed, err := model.ParseDuration(asked.Text)
	return durationAnswer{time.Duration(parsed).Nanoseconds(), parsed.String()}, err
}

type namesQuestion struct{ Text string }

type namesAnswer struct {
	Namespace   bool `json:"namespace"`
	LabelKey    bool `json:"label_key"`
	LabelValue  bool `json:"label_value"`
	PathSegment bool `json:"path_segment"`
	// Prometheus: what may stand in a query without quotes.
	MetricName bool `json:"metric_name"`
	LabelName  bool `json:"label_name"`
}

func names(asked namesQuestion) (namesAnswer, error) {
	return namesAnswer{
		Namespace:   len(validation.IsDNS1123Label(asked.Text)) == 0,
		LabelKey:    len(validation.IsQualifiedName(asked.Text)) == 0,
		LabelValue:  len(validation.IsValidLabelValue(asked.Text)) == 0,
		PathSegment: len(content.IsPathSegmentName(asked.Text)) == 0,
		MetricName:  model.LegacyValidation.IsValidMetricName(asked.Text),
		LabelName:   model.LegacyValidation.IsValidLabelName(asked.Text),
	}, nil
}
