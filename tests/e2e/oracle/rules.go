package main

import "gopkg.in/yaml.v2"

type rulesQuestion struct{ Text string }

// The types are those of prometheus-adapter's configuration file, as its documentation describes it;
// without resourceRules, which hold the same kinds of values.
type ruleFile struct {
	Rules         []rule `yaml:"rules" json:"rules"`
	ExternalRules []rule `yaml:"externalRules" json:"externalRules"`
}

type rule struct {
	SeriesQuery   string         `yaml:"seriesQuery" json:"seriesQuery"`
	SeriesFilters []seriesFilter `yaml:"seriesFilters" json:"seriesFilters"`
	Resources     resources      `yaml:"resources" json:"resources"`
	Name          naming         `yaml:"name" json:"name"`
	MetricsQuery  string         `yaml:"metricsQuery" json:"metricsQuery"`
}

type seriesFilter struct {
	Is    string `yaml:"is" json:"is"`
	IsNot string `yaml:"isNot" json:"isNot"`
}

type resources struct {
	Template   string                   `yaml:"template" json:"template"`
	Overrides  map[string]groupResource `yaml:"overrides" json:"overrides"`
	Namespaced *bool                    `yaml:"namespaced" json:"namespaced"`
}

type groupResource struct {
	Group    string `yaml:"group" json:"group"`
	Resource string `yaml:"resource" json:"resource"`
}

type naming struct {
	Matches string `yaml:"matches" json:"matches"`
	As      string `yaml:"as" json:"as"`
}

// rules reads a configuration file as strictly as prometheus-adapter does.
func rules(asked rulesQuestion) (ruleFile, error) {
	var file ruleFile
	err := yaml.UnmarshalStrict([]byte(asked.Text), &file)
	return file, err
}
