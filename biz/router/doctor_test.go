package router

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// ward fakes the examination: it finds each SKU it is asked about, and knows one that cannot be.
type ward struct{}

func (ward) Examine(_ context.Context, skus []string) (service.Examination, error) {
	e := service.Examination{Level: sale.LevelWarn}
	for _, id := range skus {
		if !sale.ValidSKUID(id) {
			return e, sale.BadInput("sku", "must match "+sale.SKUIDPattern)
		}
		e.Findings = append(e.Findings, sale.CheckSKU.Warn(id, "seen", "do"))
	}
	return e, nil
}

func TestTheDoctorIsAskedAboutEverySKU(t *testing.T) {
	n := startNode(t, nil)
	got := send(t, "GET", n.adminURL()+"/admin/v1/doctor?sku=a&sku=b%2Ec", "", "Authorization: Bearer viewer")
	var e service.Examination
	if err := json.Unmarshal([]byte(got.body), &e); err != nil || got.status != 200 || e.Level != sale.LevelWarn {
		t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	var asked []string
	for _, f := range e.Findings {
		asked = append(asked, f.Subject)
	}
	if !slices.Equal(asked, []string{"a", "b.c"}) {
		t.Errorf("asked about %v", asked)
	}
	if got := send(t, "GET", n.adminURL()+"/admin/v1/doctor?sku=a%2Fb", "", "Authorization: Bearer viewer"); got.status != 400 {
		t.Errorf("a SKU that cannot be: %d %s", got.status, got.body)
	}
}
