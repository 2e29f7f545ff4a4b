package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"stockade/biz/service"
)

// maxRulesBytes bounds what is read of a Prometheus' rules.
const maxRulesBytes = 8 << 20

// prometheus reads alert rules over the HTTP API of a Prometheus.
type prometheus struct {
	url    string
	client *http.Client
}

// alertRules is nil without an address.
func alertRules(address string) service.AlertRules {
	if address == "" {
		return nil
	}
	// Whoever answers there must not send the node, which reaches what others cannot, to another address.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return prometheus{strings.TrimRight(address, "/"), &http.Client{CheckRedirect: stay}}
}

// newDoctor lets a node examine the installation that it is a part of.
func (n *node) newDoctor(conservation *service.Conservation) *service.Doctor {
	return service.NewDoctor(service.DoctorParts{
		Dependencies: []service.Diagnoser{n.gate, n.db, n.broker},
		Ledgers:      n.db, Placer: n.gate, Conservation: conservation, Toggles: n.toggles,
		Rules: alertRules(n.cfg.Doctor.PrometheusURL), Tokens: n.operators.Expiries, Now: time.Now,
	})
}

// Groups maps each group to how many alerting rules it has.
func (p prometheus) Groups(ctx context.Context) (map[string]int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/rules?type=alert", nil)
	if err != nil {
		return nil, err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET /api/v1/rules: %s", resp.Status)
	}
	var answer struct {
		Data struct {
			Groups []struct {
				Name  string
				Rules []struct{ Type string }
			}
		}
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxRulesBytes)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("GET /api/v1/rules: %w", err)
	}
	groups := map[string]int{}
	for _, g := range answer.Data.Groups {
		groups[g.Name] += len(g.Rules) // two files may have a group of one name
	}
	return groups, nil
}
