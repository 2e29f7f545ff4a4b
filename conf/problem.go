package conf

import (
	"fmt"
	"strings"
)

// Problem is one thing wrong with the configuration.
type Problem struct {
	Key    string `json:"key,omitempty"` // dotted path; empty when the source as a whole is meant
	Where  string `json:"where"`         // file:line, environment variable, flag, or "default"
	Detail string `json:"detail"`        // what is wrong and what is allowed; never a value that may be secret
}

func (p Problem) String() string {
	if p.Key == "" {
		return p.Where + ": " + p.Detail
	}
	return p.Where + ": " + p.Key + ": " + p.Detail
}

// Problems is every problem of a configuration, in the order of the sources.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.String()
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return fmt.Sprintf("%d problems in the configuration:\n  %s", len(lines), strings.Join(lines, "\n  "))
}
