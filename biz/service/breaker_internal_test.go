package service

import (
	"errors"
	"testing"

	"stockade/biz/sale"
)

func TestWaitedForRows(t *testing.T) {
	won := sale.Decision{Outcome: sale.Promised}
	locked := sale.Decision{Outcome: sale.NotTaken, Err: errors.Join(sale.ErrRowLocked, errors.New("1205"))}
	lost := sale.Decision{Outcome: sale.NotTaken, Err: errors.New("connection lost")}
	for name, tt := range map[string]struct {
		group []sale.Decision
		want  bool
	}{
		"nobody":                       {nil, false},
		"all decided":                  {[]sale.Decision{won, {Outcome: sale.Short}, {Outcome: sale.Rejected}}, false},
		"all locked":                   {[]sale.Decision{locked, locked}, true},
		"one locked, the rest decided": {[]sale.Decision{won, locked, {Outcome: sale.Fenced}}, true},
		"one locked, another lost":     {[]sale.Decision{won, locked, lost}, false},
		"one lost":                     {[]sale.Decision{won, lost}, false},
	} {
		if got := waitedForRows(tt.group); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
