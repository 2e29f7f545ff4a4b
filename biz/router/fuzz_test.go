package router

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"stockade/biz/handler"
	"stockade/biz/sale"
	"stockade/biz/service"
)

// speak sends bytes to the public listener, as one connection's whole input, and returns all that comes back.
func speak(t *testing.T, n *node, request []byte) []byte {
	t.Helper()
	conn, err := net.Dial("tcp", n.PublicAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	// A server that refuses may close before all is read; what it said is still to be had.
	if _, err := conn.Write(request); err == nil {
		_ = conn.(*net.TCPConn).CloseWrite()
	}
	answer, _ := io.ReadAll(conn)
	return answer
}

// checkStatuses holds that no answer on the wire is an error of ours, and that nothing panicked or was logged as trouble.
func checkStatuses(t *testing.T, n *node, request, answer []byte) {
	t.Helper()
	for _, line := range bytes.Split(answer, []byte("\r\n")) {
		rest, found := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
		if !found {
			continue
		}
		code, _, _ := bytes.Cut(rest, []byte(" "))
		if status, err := strconv.Atoi(string(code)); err != nil || status >= 500 {
			t.Fatalf("%q is answered %q", request, line)
		}
	}
	if trouble := n.log.lines("level=ERROR"); len(trouble) > 0 {
		t.Fatalf("%q is logged as %q", request, trouble)
	}
}

// FuzzRequest writes anything to the buyers' socket: ids in paths, headers, framing and bodies. What reaches the use case is
// a purchase that the rules allow, and nothing is answered as our fault.
func FuzzRequest(f *testing.F) {
	const buyer = "Host: x\r\nX-Buyer-Id: u1\r\n"
	for _, seed := range []string{
		"POST /v1/skus/demo/orders HTTP/1.1\r\n" + buyer + "Content-Length: 14\r\n\r\n{\"quantity\":1}",
		"POST /v1/skus/de%2Fmo/orders HTTP/1.1\r\n" + buyer + "Idempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n{\"quantity\":1}\r\n0\r\n\r\n",
		"POST /v1/skus/demo/orders HTTP/1.1\r\n" + buyer + "Purchase-Token: a.b.c\r\nContent-Length: 2\r\n\r\n{}",
		"POST /v1/skus/demo/token HTTP/1.1\r\n" + buyer + "\r\n",
		"GET /v1/orders/" + anyID + "?sku=%00 HTTP/1.1\r\n" + buyer + "\r\n",
		"GET /v1/orders?after=x&limit=-1 HTTP/1.1\r\n" + buyer + "Authorization: Bearer a.b.c\r\n\r\n",
		"GET /v1/orders/" + anyID + "/events HTTP/1.1\r\n" + buyer + "Stockade-Signature: key=a\r\n\r\n",
		"POST /v1/orders/" + anyID + "/cancel HTTP/1.0\r\n" + buyer + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
		"POST /v1/payments HTTP/1.1\r\nHost: x\r\nwebhook-id: 1\r\n\r\n",
		"GET http://example.com/v1/skus/demo HTTP/1.1\r\n" + buyer + "X-Forwarded-For: ,,1.2.3.4:5,[::1]\r\n\r\n",
		"TRACE / HTTP/1.1\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02\x00", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	n := startNode(f, func(c *Config) { c.PaymentSecrets = []string{secretNow} })
	f.Fuzz(func(t *testing.T, request []byte) {
		if len(request) > 200_000 {
			return
		}
		n.shop.set(func() { n.shop.bought = nil })
		n.desk.set(func() { n.desk.asked, n.desk.settled = nil, sale.Settled{Outcome: sale.NoOrder} })
		answer := speak(t, n, request)
		checkStatuses(t, n, request, answer)
		n.shop.set(func() {
			for _, bought := range n.shop.bought {
				if bought.Quantity < 1 || bought.Quantity > sale.MaxQuantity || !service.ValidBuyer(bought.Buyer) || !sale.ValidSKUID(bought.SKU) {
					t.Fatalf("%q buys %+v", request, bought)
				}
			}
		})
		n.desk.set(func() {
			for _, asked := range n.desk.asked {
				if asked.Kind != sale.Cancel || !service.ValidBuyer(asked.Buyer) {
					t.Fatalf("%q settles %+v", request, asked)
				}
			}
		})
	})
}

// FuzzPaymentCallback sends callbacks, some with a good signature: without one nothing is settled, and with one only what
// the standard library reads in the body, too.
func FuzzPaymentCallback(f *testing.F) {
	at := strconv.FormatInt(testNow.Unix(), 10)
	for _, body := range []string{
		paymentBody, "", "{}", `{"payment_id":"","order_id":"` + anyID + `"}`, `{"payment_id":"p","order_id":42}`, `[` + paymentBody + `]`,
		`{"payment_id":"p","payment_id":"q","order_id":"` + anyID + `"}`, `{"payment_id":"p","order_id":"` + strings.ToUpper(anyID) + `"}`,
		`{"payment_id":"\ud800","order_id":"` + anyID + `","amount":1}`,
	} {
		f.Add([]byte(body), "msg_1", at, "v1,"+strings.Repeat("A", 43)+"=", true)
		f.Add([]byte(body), "msg_1", at, "v1,"+strings.Repeat("A", 43)+"=", false)
	}
	f.Add([]byte(paymentBody), "", "99999999999999999999", "v1,", false)
	f.Add([]byte(paymentBody), "a.b", "-1", "v2,= v1,%", false)
	n := startNode(f, func(c *Config) { c.PaymentSecrets = []string{secretNow, secretNext} })
	f.Fuzz(func(t *testing.T, body []byte, id, at, signature string, honest bool) {
		if len(body) > handler.MaxBody || strings.ContainsFunc(id+at+signature, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return // what no client can send; FuzzRequest sends it
		}
		header := []string{"webhook-id: " + id, "webhook-timestamp: " + at, "webhook-signature: " + signature}
		if honest {
			header = signed(t, secretNext, "msg_1", testNow, string(body))
		}
		n.desk.set(func() { n.desk.asked, n.desk.settled = nil, sale.Settled{Outcome: sale.NoOrder} })
		got := send(t, "POST", n.publicURL()+"/v1/payments", string(body), header...)
		n.desk.set(func() {
			switch {
			case !honest && (got.status != 401 || len(n.desk.asked) > 0):
				t.Fatalf("%q with %q: %d %s, settled %+v", body, header, got.status, got.body, n.desk.asked)
			case len(n.desk.asked) == 0 && got.status != 400 && got.status != 422 && got.status != 401:
				t.Fatalf("%q: %d %s", body, got.status, got.body)
			}
			for _, asked := range n.desk.asked {
				var plain struct {
					Payment string `json:"payment_id"`
					Order   string `json:"order_id"`
				}
				err := json.Unmarshal(body, &plain)
				if asked.Kind != sale.Pay || err != nil || plain.Payment != asked.Payment || !strings.EqualFold(plain.Order, asked.Order.String()) {
					t.Fatalf("%q is read as %+v, the standard library says %+v, %v", body, asked, plain, err)
				}
			}
		})
		if trouble := n.log.lines("level=ERROR"); len(trouble) > 0 || got.status >= 500 {
			t.Fatalf("%q: %d %s, logged %q", body, got.status, got.body, trouble)
		}
	})
}
