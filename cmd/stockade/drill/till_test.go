//go:build services

package drill_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stockade/biz/handler"
	"stockade/biz/sale"
	"stockade/cmd/stockade/proctest"
)

// Codes of changes of orders: that of a success is the state that the order has then.
const (
	orderPaid    = "ORDER_PAID"
	orderQueued  = "ORDER_QUEUED"
	refundNeeded = "REFUND_REQUIRED"
)

// changeCodes are the codes that a correct payment or cancel may get.
var changeCodes = map[string]bool{
	string(sale.OrderPaid): true, string(sale.OrderClosed): true, orderPaid: true, orderQueued: true, refundNeeded: true,
	sale.Busy.String(): true,
}

// paymentSecret is what the payment provider of the drills signs with.
func paymentSecret() string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte("a secret of thirty-two bytes ok!"))
}

// takePayments configures nodes that start from now on to believe the provider.
func (w *world) takePayments() { w.set("router", fmt.Sprintf("paymentSecrets: [%q]", paymentSecret())) }

// pay sends a payment's callback to a node, once, and records what came of it.
func (c *crowd) pay(client int, n *proctest.Node, r request, order, payment string) answer {
	r.kind, r.key = paying, payment
	body := fmt.Sprintf(`{"payment_id":%q,"order_id":%q}`, payment, order)
	headers, err := handler.SignWebhook(paymentSecret(), "callback-"+payment, time.Now(), []byte(body))
	if err != nil {
		return answer{Code: unforeseen, Reason: err.Error()}
	}
	return c.change(client, r, order, n.Public+"/v1/payments", body, headers)
}

// cancel has the buyer cancel an order at a node, once, and records what came of it.
func (c *crowd) cancel(client int, n *proctest.Node, r request, order string) answer {
	r.kind, r.key = cancelling, order
	return c.change(client, r, order, n.Public+"/v1/orders/"+order+"/cancel", "", []string{"X-Buyer-Id", r.buyer})
}

// change posts to a URL. The recorded answer names the order, whatever the node said.
func (c *crowd) change(client int, r request, order, url, body string, headers []string) answer {
	call := c.h.now()
	a := c.post(url, body, headers)
	a.OrderID = order
	c.h.add(attempt{request: r, answer: a, client: client, call: call, returned: c.h.now()})
	return a
}

func (c *crowd) post(url, body string, headers []string) answer {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return answer{Code: unforeseen, Reason: err.Error()}
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.client.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return answer{Code: unreached}
	}
	if err != nil {
		return answer{Code: noAnswer}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return answer{Code: noAnswer}
	}
	a := answer{}
	broken := json.Unmarshal(text, &a) != nil
	if resp.StatusCode == http.StatusOK {
		a.Code = a.State
	}
	a.Status, a.replayed = resp.StatusCode, resp.Header.Get("Idempotent-Replayed") == "true"
	if broken || !changeCodes[a.Code] {
		return answer{Status: resp.StatusCode, Code: unforeseen, Reason: string(text)}
	}
	return a
}

// settled tells whether asking again would change nothing.
func (a answer) settled() bool { return a.verdict() && a.Code != orderQueued }

// payUntilSettled sends a callback again and again, as a provider does, until the service has decided or time is up.
func (c *crowd) payUntilSettled(client int, n *proctest.Node, r request, order, payment string, deadline time.Time) answer {
	for {
		a := c.pay(client, n, r, order, payment)
		if a.settled() || time.Now().After(deadline) {
			return a
		}
		pass(retryPause)
	}
}

// order asks for a buyer's order.
func (c *crowd) order(n *proctest.Node, r request, id string) (o sale.Order, err error) {
	req, err := http.NewRequest(http.MethodGet, n.Public+"/v1/orders/"+id+"?sku="+r.sku, nil)
	if err != nil {
		return o, err
	}
	req.Header.Set("X-Buyer-Id", r.buyer)
	resp, err := c.client.Do(req)
	if err != nil {
		return o, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return o, errors.New("order " + id + ": status " + strconv.Itoa(resp.StatusCode))
	}
	return o, json.NewDecoder(resp.Body).Decode(&o)
}

// change adds what was told of a payment or a cancel. One whose outcome is unknown is in what is written.
func (b *opBuilder) change(a attempt) {
	o := op{order: number(b.orders, a.OrderID)}
	switch a.Code {
	case string(sale.OrderPaid):
		o.kind = opPay
	case string(sale.OrderClosed):
		o.kind = opClose
	case orderPaid:
		o.kind, o.seen = opSee, paid
	case refundNeeded:
		o.kind, o.seen = opSee, closed
	default:
		return
	}
	b.add(o, a.call, a.returned)
}
