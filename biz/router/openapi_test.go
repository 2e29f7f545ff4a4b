package router

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

// document is the API description as plain maps and lists.
func document(t *testing.T) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := yaml.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func at(t *testing.T, v any, path ...string) any {
	t.Helper()
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok || m[name] == nil {
			t.Fatalf("openapi.yaml has no %q of %v", name, path)
		}
		v = m[name]
	}
	return v
}

var pathParameter = regexp.MustCompile(`:([a-z]+)`)

// TestRoutesAreDescribed holds that what is served is described, and the other way round.
func TestRoutesAreDescribed(t *testing.T) {
	n := startNode(t, nil)
	served := map[string]bool{}
	for _, r := range append(n.public.Routes(), n.admin.Routes()...) {
		served[r.Method+" "+pathParameter.ReplaceAllString(r.Path, "{$1}")] = true
	}
	described := map[string]bool{}
	ids := map[string]bool{}
	for path, item := range at(t, document(t), "paths").(map[string]any) {
		for method, op := range item.(map[string]any) {
			if method == "parameters" || method == "servers" {
				continue
			}
			described[strings.ToUpper(method)+" "+path] = true
			id := at(t, op, "operationId").(string)
			if ids[id] {
				t.Errorf("operationId %s twice", id)
			}
			ids[id] = true
			if len(at(t, op, "responses").(map[string]any)) == 0 {
				t.Errorf("%s has no responses", id)
			}
		}
	}
	if !reflect.DeepEqual(served, described) {
		t.Errorf("served %v\ndescribed %v", keys(served), keys(described))
	}
}

func keys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// TestCodesAreDescribed holds that the table of codes, the schema and the responses agree.
func TestCodesAreDescribed(t *testing.T) {
	var described []string
	for _, v := range at(t, document(t), "components", "schemas", "Code", "enum").([]any) {
		described = append(described, v.(string))
	}
	var table []string
	for _, c := range handler.Codes() {
		table = append(table, c.Name)
		if c.Name == "" || c.Title == "" || c.Meaning == "" || c.Status < 400 || c.Status > 599 || strings.Contains(c.Meaning, "\n") {
			t.Errorf("incomplete row %+v", c)
		}
		if c.Verdict && c.Result.String() != c.Name {
			t.Errorf("%s has the number of %s", c.Name, c.Result)
		}
		if strings.Count(string(openAPI), c.Name) < 2 {
			t.Errorf("%s is in no response", c.Name)
		}
	}
	if !slices.Equal(described, table) {
		t.Errorf("described %v\ntable %v", described, table)
	}
	verdicts := 0
	for _, c := range sale.Codes {
		if slices.Contains(table, c.String()) {
			verdicts++
		}
	}
	if verdicts != len(sale.Codes)-1 {
		t.Errorf("%d of the %d refusals are in the table", verdicts, len(sale.Codes)-1)
	}
}

// TestReferencesResolve walks over the whole description.
func TestReferencesResolve(t *testing.T) {
	doc := document(t)
	used := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				at(t, doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
				used[ref] = true
			}
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(doc)
	for kind, list := range at(t, doc, "components").(map[string]any) {
		if kind == "securitySchemes" {
			continue // named without $ref
		}
		for name := range list.(map[string]any) {
			if ref := "#/components/" + kind + "/" + name; !used[ref] {
				t.Errorf("%s is used nowhere", ref)
			}
		}
	}
}

// TestCredentialsAreDescribed holds that the description asks for the credentials that the routes ask for.
func TestCredentialsAreDescribed(t *testing.T) {
	n := startNodeFor(t, nil, nil) // knows nobody
	doc := document(t)
	schemes := at(t, doc, "components", "securitySchemes").(map[string]any)
	used := map[string]bool{}
	for path, item := range at(t, doc, "paths").(map[string]any) {
		base := n.publicURL()
		if strings.HasPrefix(path, "/admin/") {
			base = n.adminURL()
		}
		url := base + strings.NewReplacer("{sku}", "demo", "{id}", anyID, "{seq}", "1", "{name}", "relay").Replace(path)
		for method, op := range item.(map[string]any) {
			if method == "parameters" || method == "servers" {
				continue
			}
			asked, own := op.(map[string]any)["security"].([]any)
			if !own {
				asked = at(t, doc, "security").([]any)
			}
			for _, choice := range asked {
				for name := range choice.(map[string]any) {
					used[name] = true
				}
			}
			got := send(t, strings.ToUpper(method), url, "", "Authorization: Bearer nobody")
			if refused := strings.Contains(got.body, `"code":"UNAUTHENTICATED"`); refused != (len(asked) > 0) {
				t.Errorf("%s %s asks for %v, and nobody gets %d %s", method, path, asked, got.status, got.body)
			}
		}
	}
	if len(used) != len(schemes) {
		t.Errorf("used %v, described %v", used, schemes)
	}
}

// TestAnswersMatchTheirSchemas compares real answers with the properties that are described.
func TestAnswersMatchTheirSchemas(t *testing.T) {
	n := startNode(t, nil)
	n.put(orderOf(sale.OrderQueued))
	n.shop.set(func() {
		n.shop.result = sale.Result{Code: sale.Accepted, Order: sale.Order{ID: someID, State: sale.OrderQueued}}
	})
	n.desk.set(func() { n.desk.letters = []sale.DeadLetter{letter(1)} })
	doc := document(t)
	for _, tc := range []struct {
		schema string
		got    reply
	}{
		{"Accepted", n.buy(t, `{"quantity":1}`)},
		{"PurchaseToken", n.token(t, "demo", "", "X-Buyer-Id: u1")},
		{"Stock", send(t, "GET", n.publicURL()+"/v1/skus/demo", "")},
		{"Order", send(t, "GET", n.publicURL()+"/v1/orders/"+someID.String(), "", "X-Buyer-Id: u1")},
		{"OrderPage", send(t, "GET", n.publicURL()+"/v1/orders", "", "X-Buyer-Id: u1")},
		{"Listing", send(t, "GET", n.adminURL()+"/admin/v1/skus/demo", "")},
		{"ListingPage", send(t, "GET", n.adminURL()+"/admin/v1/skus", "")},
		{"Shares", send(t, "GET", n.adminURL()+"/admin/v1/skus/demo/shares", "")},
		{"Books", send(t, "GET", n.adminURL()+"/admin/v1/skus/demo/books", "")},
		{"Audit", send(t, "GET", n.adminURL()+"/admin/v1/skus/demo/audit", "")},
		{"Reconciliation", send(t, "POST", n.adminURL()+"/admin/v1/skus/demo/reconcile", "")},
		{"Closeout", send(t, "GET", n.adminURL()+"/admin/v1/skus/demo/closeout", "")},
		{"Node", send(t, "GET", n.adminURL()+"/admin/v1/node", "")},
		{"Breakers", send(t, "GET", n.adminURL()+"/admin/v1/breakers", "")},
		{"Toggles", send(t, "PUT", n.adminURL()+"/admin/v1/toggles/path", `{"value":"mysql","reason":"r"}`)},
		{"AuditPage", send(t, "GET", n.adminURL()+"/admin/v1/audit", "")},
		{"DeadLetter", send(t, "GET", n.adminURL()+"/admin/v1/dead/1", "")},
		{"DeadLetterPage", send(t, "GET", n.adminURL()+"/admin/v1/dead?limit=1", "")},
		{"Readiness", send(t, "GET", n.publicURL()+"/readyz", "")},
		{"Problem", send(t, "GET", n.publicURL()+"/v1/skus/none", "")},
	} {
		var answer any
		if err := json.Unmarshal([]byte(tc.got.body), &answer); err != nil {
			t.Fatalf("%s: %v in %d %s", tc.schema, err, tc.got.status, tc.got.body)
		}
		conform(t, doc, tc.schema, at(t, doc, "components", "schemas", tc.schema), answer)
	}
}

// conform checks that an object has the required properties and no other than the described ones.
func conform(t *testing.T, doc map[string]any, where string, schema, v any) {
	t.Helper()
	s := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		conform(t, doc, where, at(t, doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...), v)
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			conform(t, doc, where+"."+name, at(t, s, "properties", name), x)
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				t.Errorf("%s misses %s", where, name)
			}
		}
	case []any:
		for i, x := range v {
			conform(t, doc, fmt.Sprintf("%s[%d]", where, i), at(t, s, "items"), x)
		}
	}
}
