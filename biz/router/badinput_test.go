package router

import (
	"encoding/json"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
)

// problem is the part of an answer that a client acts on.
type problem struct {
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Field     string `json:"field"`
	Detail    string `json:"detail"`
	RequestID string `json:"request_id"`
}

func readProblem(t *testing.T, got reply) problem {
	t.Helper()
	if kind := got.header.Get("Content-Type"); kind != "application/problem+json" {
		t.Errorf("content type %q", kind)
	}
	var p problem
	if err := json.Unmarshal([]byte(got.body), &p); err != nil {
		t.Fatalf("%v in %s", err, got.body)
	}
	if p.Status != got.status {
		t.Errorf("status %d in a body of an answer with %d", p.Status, got.status)
	}
	if p.RequestID == "" || p.RequestID != got.header.Get("X-Request-Id") {
		t.Errorf("request_id %q, header %q", p.RequestID, got.header.Get("X-Request-Id"))
	}
	return p
}

const anyID = "0198c0de-0000-7000-8000-000000000001"

type badCase struct {
	name, method, path, body string
	header                   []string
	status                   int
	code, field              string
}

// TestBadInput sends everything that must be refused before a use case hears of it.
func TestBadInput(t *testing.T) {
	n := startNode(t, nil)
	const orders = "/v1/skus/demo/orders"
	json1, buyer := "Content-Type: application/json", "X-Buyer-Id: u1"
	quantity := func(name, body string) badCase {
		return badCase{name, "POST", orders, body, []string{buyer, json1}, 422, "INVALID_FIELD", "quantity"}
	}
	body := func(name, body, field string) badCase {
		return badCase{name, "POST", orders, body, []string{buyer, json1}, 400, "MALFORMED_BODY", field}
	}
	sku := func(name, id string) badCase {
		return badCase{
			name, "POST", "/v1/skus/" + id + "/orders", `{"quantity":1}`,
			[]string{buyer, json1},
			400, "BAD_REQUEST", "sku",
		}
	}
	header := func(name string, status int, code, field string, lines ...string) badCase {
		return badCase{name, "POST", orders, `{"quantity":1}`, lines, status, code, field}
	}
	cases := []badCase{
		quantity("zero", `{"quantity":0}`),
		quantity("minus zero", `{"quantity":-0}`),
		quantity("negative", `{"quantity":-1}`),
		quantity("over the maximum", `{"quantity":1001}`),
		quantity("a float", `{"quantity":1.5}`),
		quantity("a whole float", `{"quantity":1.0}`),
		quantity("an exponent", `{"quantity":1e0}`),
		quantity("a string", `{"quantity":"1"}`),
		quantity("2^63", `{"quantity":9223372036854775808}`),
		quantity("a very long number", `{"quantity":`+strings.Repeat("9", 1000)+`}`),
		quantity("null", `{"quantity":null}`),
		quantity("true", `{"quantity":true}`),
		quantity("an array", `{"quantity":[1]}`),
		quantity("an object", `{"quantity":{"quantity":1}}`),
		quantity("a leading zero", `{"quantity":01}`),
		quantity("missing", `{}`),

		body("empty", "", "body"),
		body("blank", " \n\t", "body"),
		body("not JSON", "quantity=1", "body"),
		body("cut off", `{"quantity":1`, "body"),
		body("an array", `[{"quantity":1}]`, "body"),
		body("a number", `1`, "body"),
		body("null", `null`, "body"),
		body("trailing data", `{"quantity":1}{"quantity":1}`, "body"),
		body("trailing letters", `{"quantity":1} x`, "body"),
		body("repeated member", `{"quantity":1,"quantity":2}`, "quantity"),
		body("repeated member, escaped", `{"quantity":1,"quantit\u0079":2}`, "quantity"),
		body("unknown member", `{"quantity":1,"price":0}`, "price"),
		body("another case", `{"Quantity":1}`, "Quantity"),
		body("no UTF-8", "{\"quantity\":1,\"\xff\":2}", "body"),
		body("a comma too many", `{"quantity":1,}`, "body"),
		body("a comment", `{"quantity":1/**/}`, "body"),
		body("deep arrays", `{"quantity":`+strings.Repeat("[", 30_000)+strings.Repeat("]", 30_000)+`}`, "body"),
		body("deep objects", `{"quantity":`+strings.Repeat(`{"a":`, 10_000)+"1"+strings.Repeat("}", 10_000)+`}`, "body"),
		body("deep from the start", strings.Repeat("[", 60_000), "body"),
		{"over 64 KiB", "POST", orders, `{"quantity":1` + strings.Repeat(" ", 64<<10) + "}", []string{buyer, json1}, 413, "BODY_TOO_LARGE", "body"},
		{"far over 64 KiB", "POST", orders, strings.Repeat("x", 1<<20), []string{buyer, json1}, 413, "BODY_TOO_LARGE", "body"},

		sku("300 characters", strings.Repeat("a", 300)),
		sku("65 characters", strings.Repeat("a", 65)),
		sku("braces", "{demo}"),
		sku("encoded braces", "%7Bdemo%7D"),
		sku("encoded space", "de%20mo"),
		sku("encoded slash", "de%2Fmo"),
		sku("encoded dots", "%2E%2E%2Fdemo"),
		sku("encoded NUL", "demo%00"),
		sku("plus", "de+mo"),
		sku("unicode", url.PathEscape("démo")),
		sku("emoji", url.PathEscape("🎟")),
		sku("bytes that are no UTF-8", "%FF%FE"),
		{"sku of a read", "GET", "/v1/skus/%7Bdemo%7D", "", nil, 400, "BAD_REQUEST", "sku"},

		header("no buyer", 401, "BUYER_MISSING", "X-Buyer-Id", json1),
		header("empty buyer", 401, "BUYER_MISSING", "X-Buyer-Id", json1, "X-Buyer-Id: "),
		header("two buyers", 400, "BAD_REQUEST", "X-Buyer-Id", json1, buyer, "X-Buyer-Id: u2"),
		header("the same buyer twice", 400, "BAD_REQUEST", "X-Buyer-Id", json1, buyer, buyer),
		header("129 bytes of buyer", 400, "BAD_REQUEST", "X-Buyer-Id", json1, "X-Buyer-Id: "+strings.Repeat("b", 129)),
		header("buyer is no UTF-8", 400, "BAD_REQUEST", "X-Buyer-Id", json1, "X-Buyer-Id: \xff"),
		header("buyer turns the text around", 400, "BAD_REQUEST", "X-Buyer-Id", json1, "X-Buyer-Id: a\u202eb"),
		header("buyer with a C1 control", 400, "BAD_REQUEST", "X-Buyer-Id", json1, "X-Buyer-Id: a\u0085b"),

		header("1 KiB key", 400, "BAD_REQUEST", "Idempotency-Key", json1, buyer, "Idempotency-Key: "+strings.Repeat("k", 1<<10)),
		header("256 byte key", 400, "BAD_REQUEST", "Idempotency-Key", json1, buyer, "Idempotency-Key: "+strings.Repeat("k", 256)),
		header("empty key", 400, "BAD_REQUEST", "Idempotency-Key", json1, buyer, "Idempotency-Key: "),
		header("key is not ASCII", 400, "BAD_REQUEST", "Idempotency-Key", json1, buyer, "Idempotency-Key: é"),
		header("two keys", 400, "BAD_REQUEST", "Idempotency-Key", json1, buyer, "Idempotency-Key: a", "Idempotency-Key: b"),

		header("form", 415, "UNSUPPORTED_MEDIA_TYPE", "Content-Type", buyer, "Content-Type: application/x-www-form-urlencoded"),
		header("multipart", 415, "UNSUPPORTED_MEDIA_TYPE", "Content-Type", buyer, "Content-Type: multipart/form-data; boundary=x"),
		header("malformed type", 415, "UNSUPPORTED_MEDIA_TYPE", "Content-Type", buyer, "Content-Type: ;"),
		header("compressed", 415, "UNSUPPORTED_MEDIA_TYPE", "Content-Encoding", buyer, json1, "Content-Encoding: gzip"),

		{"order id", "GET", "/v1/orders/42", "", []string{buyer}, 400, "BAD_REQUEST", "id"},
		{"order id with braces", "GET", "/v1/orders/{" + anyID[2:] + "}", "", []string{buyer}, 400, "BAD_REQUEST", "id"},
		{"order without buyer", "GET", "/v1/orders/" + anyID, "", nil, 401, "BUYER_MISSING", "X-Buyer-Id"},
		{"events without buyer", "GET", "/v1/orders/" + anyID + "/events", "", nil, 401, "BUYER_MISSING", "X-Buyer-Id"},
		{"orders without buyer", "GET", "/v1/orders", "", nil, 401, "BUYER_MISSING", "X-Buyer-Id"},
		{"page of 0", "GET", "/v1/orders?limit=0", "", []string{buyer}, 400, "BAD_REQUEST", "limit"},
		{"page of 201", "GET", "/v1/orders?limit=201", "", []string{buyer}, 400, "BAD_REQUEST", "limit"},
		{"page of ten", "GET", "/v1/orders?limit=ten", "", []string{buyer}, 400, "BAD_REQUEST", "limit"},
		{"cursor", "GET", "/v1/orders?after=x", "", []string{buyer}, 400, "BAD_REQUEST", "after"},

		{"no such path", "GET", "/v2/skus/demo", "", nil, 404, "ROUTE_NOT_FOUND", ""},
		{"extra slash", "POST", orders + "/", `{"quantity":1}`, []string{buyer}, 404, "ROUTE_NOT_FOUND", ""},
		{"empty sku", "POST", "/v1/skus//orders", `{"quantity":1}`, []string{buyer}, 400, "BAD_REQUEST", "sku"},
		{"method", "PUT", orders, `{"quantity":1}`, []string{buyer}, 405, "METHOD_NOT_ALLOWED", ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got := send(t, tc.method, n.publicURL()+tc.path, tc.body, tc.header...)
			p := readProblem(t, got)
			if got.status != tc.status || p.Code != tc.code || p.Field != tc.field {
				t.Errorf("got %d %s for %q, want %d %s for %q: %s", got.status, p.Code, p.Field, tc.status, tc.code, tc.field, got.body)
			}
		})
	}
	checkUntouched(t, n)
}

// checkUntouched holds that refused input reached no use case, cost no buyer a token it should not, and is not an
// error of ours.
func checkUntouched(t *testing.T, n *node) {
	t.Helper()
	if calls := n.shop.calls.Load(); calls != 0 {
		t.Errorf("bad input reached a use case %d times", calls)
	}
	if logged := append(n.log.lines("level=ERROR"), n.log.lines("level=WARN")...); len(logged) != 0 {
		t.Errorf("bad input was logged as trouble: %q", logged)
	}
}

// TestEdgesOfGoodInput holds that the limits themselves are allowed.
func TestEdgesOfGoodInput(t *testing.T) {
	n := startNode(t, nil)
	for _, tc := range []struct {
		name, body string
		header     []string
	}{
		{"no content type", `{"quantity":1}`, []string{"X-Buyer-Id: u1"}},
		{"charset", `{"quantity":1}`, []string{"X-Buyer-Id: u1", "Content-Type: application/json; charset=utf-8"}},
		{"white space", " {\r\n\t\"quantity\" : 1000 }\n", []string{"X-Buyer-Id: u1"}},
		{"escaped name", `{"quantit\u0079":1}`, []string{"X-Buyer-Id: u1"}},
		{"128 bytes of buyer", `{"quantity":1}`, []string{"X-Buyer-Id: " + strings.Repeat("é", 64)}},
		{"255 byte key", `{"quantity":1}`, []string{"X-Buyer-Id: u1", "Idempotency-Key: " + strings.Repeat("~", 255)}},
		{"64 KiB", `{"quantity":1` + strings.Repeat(" ", 64<<10-14) + "}", []string{"X-Buyer-Id: u1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := n.shop.calls.Load()
			if got := send(t, "POST", n.publicURL()+"/v1/skus/de%2Dmo/orders", tc.body, tc.header...); got.status != 409 {
				t.Errorf("got %d %s", got.status, got.body) // the fake's zero result is SOLD_OUT
			}
			if n.shop.calls.Load() != before+1 {
				t.Error("the purchase did not reach the service")
			}
		})
	}
}

// TestFraming speaks to the socket: no HTTP client would send these.
func TestFraming(t *testing.T) {
	n := startNode(t, nil)
	const head = "POST /v1/skus/demo/orders HTTP/1.1\r\nHost: x\r\nX-Buyer-Id: u1\r\n"
	const chunked = "e\r\n{\"quantity\":1}\r\n0\r\n\r\n"
	for _, tc := range []struct{ name, request, status, field string }{
		{"both, length first", head + "Content-Length: 14\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked, "400", "Transfer-Encoding"},
		{"both, length last", head + "Transfer-Encoding: chunked\r\ncontent-length: 14\r\n\r\n" + chunked, "400", "Transfer-Encoding"},
		{"both, body by length", head + "Content-Length: 14\r\nTransfer-Encoding: chunked\r\n\r\n{\"quantity\":1}", "400", "Transfer-Encoding"},
		{"identity beside a length", head + "Content-Length: 14\r\nTransfer-Encoding: identity\r\n\r\n{\"quantity\":1}", "400", "Transfer-Encoding"},
		{"obfuscated", head + "Transfer-Encoding: xchunked\r\n\r\n" + chunked, "400", "Transfer-Encoding"},
		{"two lengths", head + "Content-Length: 14\r\nContent-Length: 1\r\n\r\n{\"quantity\":1}", "400", "Content-Length"},
		{"no host", "GET /v1/skus/demo HTTP/1.1\r\n\r\n", "400", "Host"},
		{"chunks over 64 KiB", head + "Transfer-Encoding: chunked\r\n\r\n20000\r\n" + strings.Repeat(" ", 0x20000) + "\r\n0\r\n\r\n", "413", "body"},
		{"broken chunk", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{\"quantity\":1}\r\n0\r\n\r\n", "400", "body"},
		{"huge length announced", head + "Content-Length: 9000000000\r\n\r\n" + strings.Repeat(" ", 16<<10), "413", "body"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer := raw(t, n, tc.request)
			if !strings.HasPrefix(answer, "HTTP/1.1 "+tc.status+" ") || !strings.Contains(answer, `"field":"`+tc.field+`"`) {
				t.Errorf("want %s for %s, got %q", tc.status, tc.field, answer)
			}
			if tc.field != "Host" && !strings.Contains(answer, "Connection: close") {
				t.Errorf("the connection stays open: %q", answer)
			}
		})
	}
	checkUntouched(t, n)

	if answer := raw(t, n, head+"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"+chunked); !strings.HasPrefix(answer, "HTTP/1.1 409 ") {
		t.Errorf("an honest chunked purchase: %q", answer)
	}
	if calls := n.shop.calls.Load(); calls != 1 {
		t.Errorf("%d purchases, want the honest one", calls)
	}
}

// raw writes a request and reads until the server closes the connection, or says nothing for a while.
func raw(t *testing.T, n *node, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", n.PublicAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	var answer []byte
	buf := make([]byte, 4096)
	for {
		k, err := conn.Read(buf)
		answer = append(answer, buf[:k]...)
		if err != nil || strings.HasSuffix(string(answer), "}") {
			return string(answer)
		}
	}
}
