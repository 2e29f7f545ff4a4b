package router

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"stockade/biz/auth"
)

func TestMain(m *testing.M) {
	UseLogger(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// eventually polls a condition until it holds or the test is over.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func (n *node) awaitUp(t testing.TB) {
	t.Helper()
	eventually(t, "both servers answer", func() bool {
		for _, at := range []string{n.publicURL(), n.adminURL()} {
			resp, err := http.Get(at + "/livez")
			if err != nil {
				return false
			}
			_ = resp.Body.Close()
		}
		return true
	})
}

func (n *node) publicURL() string { return "http://" + n.PublicAddr().String() }
func (n *node) adminURL() string  { return "http://" + n.AdminAddr().String() }

// reply is an answer as a client sees it.
type reply struct {
	status int
	header http.Header
	body   string
}

// staff fakes the file of admin tokens: a token is its role.
type staff struct{}

func (staff) Operator(token string) (auth.Operator, error) {
	switch role := auth.Role(token); {
	case role.Valid():
		return auth.Operator{Name: "ann-" + token, Role: role}, nil
	case token == "expired":
		return auth.Operator{}, auth.ErrTokenExpired
	}
	return auth.Operator{}, auth.ErrTokenUnknown
}

// send makes a request; header lines are "Name: value". To the admin API it is an admin's
// with a reason, unless it says otherwise.
func send(t testing.TB, method, url, body string, header ...string) reply {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Add(name, value)
	}
	if strings.HasPrefix(req.URL.Path, "/admin/") && req.Header.Get("Authorization") == "" {
		req.Header.Set("Authorization", "Bearer "+string(auth.RoleAdmin))
	}
	if method != "GET" && strings.HasPrefix(req.URL.Path, "/admin/") && req.Header.Values("X-Reason") == nil {
		req.Header.Set("X-Reason", "a test")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(raw)}
}

func (n *node) buy(t testing.TB, body string, header ...string) reply {
	t.Helper()
	return send(t, "POST", n.publicURL()+"/v1/skus/demo/orders", body,
		append([]string{"X-Buyer-Id: u1", "Content-Type: application/json", "X-Request-Id: r1"}, header...)...)
}

// open is Listen and New in one.
func open(cfg Config, p Parts) (*Servers, error) {
	l, err := Listen(cfg)
	if err != nil {
		return nil, err
	}
	return New(l, p), nil
}
