package mq_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/mq"
	"stockade/mq/mqtest"
)

func someOrders(n int) []sale.Order {
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]sale.Order, n)
	for i := range out {
		out[i] = mqtest.NewOrder(rng, uint64(i))
	}
	return out
}

func TestEnvelopeGoesThereAndBack(t *testing.T) {
	for n := 1; n <= mq.MaxEnvelopeOrders; n++ {
		orders := someOrders(n)
		body, err := mq.EncodeEnvelope(orders)
		if err != nil {
			t.Fatal(err)
		}
		back, err := mq.DecodeEnvelope(mq.EnvelopeType, body)
		if err != nil || !reflect.DeepEqual(orders, back) {
			t.Fatalf("%d orders came back as %+v, %v", n, back, err)
		}
	}
}

// The relay relies on it: 100 orders fit, however long their fields and however much of them JSON escapes.
func TestGreatestEnvelopeFits(t *testing.T) {
	orders := someOrders(mq.MaxEnvelopeOrders)
	for i := range orders {
		orders[i].SKU = strings.Repeat("s", sale.MaxSKUID)
		orders[i].Buyer = strings.Repeat("\x01", sale.MaxBuyerID)
		orders[i].Quantity = sale.MaxQuantity
		orders[i].State, orders[i].Reason = sale.OrderClosed, sale.ReasonCompensated
		orders[i].AcceptedAt = orders[i].AcceptedAt.Add(time.Nanosecond)
		if err := mq.CheckOrder(orders[i]); err != nil {
			t.Fatal(err)
		}
	}
	if body, err := mq.EncodeEnvelope(orders); err != nil {
		t.Fatal(err)
	} else {
		t.Logf("%d bytes of %d", len(body), mq.MaxEnvelopeBytes)
	}
}

func TestEnvelopeIsStrict(t *testing.T) {
	good, err := mq.EncodeEnvelope(someOrders(1))
	if err != nil {
		t.Fatal(err)
	}
	text := string(good)
	many, err := mq.EncodeEnvelope(someOrders(mq.MaxEnvelopeOrders))
	if err != nil {
		t.Fatal(err)
	}
	one := text[len(`{"orders":[`) : len(text)-2]
	expiresAt := regexp.MustCompile(`"expires_at":"[^"]*"`)
	if _, err := mq.DecodeEnvelope(mq.EnvelopeType, []byte(expiresAt.ReplaceAllString(text, `"expires_at":"9999-12-31T23:59:59Z"`))); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"empty":           "",
		"no object":       "[]",
		"null":            "null",
		"no orders":       `{"orders":[]}`,
		"something after": text + "{}",
		"unknown field":   strings.Replace(text, `"sku"`, `"sqo"`, 1),
		"envelope field":  strings.Replace(text, `{"orders"`, `{"x":1,"orders"`, 1),
		"wrong type":      strings.Replace(text, `"sku":"demo"`, `"sku":7`, 1),
		"odd id":          strings.Replace(text, `"order_id":"`, `"order_id":"z`, 1),
		"cut":             text[:len(text)-1],
		"101 orders":      strings.Replace(string(many), `{"orders":[`, `{"orders":[`+one+",", 1),
		"too long":        text + strings.Repeat(" ", mq.MaxEnvelopeBytes),
		"year 10000":      expiresAt.ReplaceAllString(text, `"expires_at":"9999-12-31T23:59:59-01:00"`),
	} {
		if orders, err := mq.DecodeEnvelope(mq.EnvelopeType, []byte(body)); err == nil || orders != nil {
			t.Errorf("%s: decoded as %+v, %v", name, orders, err)
		}
	}
	for _, contentType := range []string{"", "application/json", "application/vnd.stockade.orders+json; version=2"} {
		if _, err := mq.DecodeEnvelope(contentType, good); err == nil {
			t.Errorf("content type %q was taken", contentType)
		}
	}
	for _, n := range []int{0, mq.MaxEnvelopeOrders + 1} {
		if _, err := mq.EncodeEnvelope(someOrders(n)); err == nil {
			t.Errorf("%d orders were encoded", n)
		}
	}
}

func TestCheckOrderNamesTheField(t *testing.T) {
	for field, spoil := range map[string][]func(*sale.Order){
		"order_id": {func(o *sale.Order) { o.ID = sale.OrderID{} }},
		"sku":      {func(o *sale.Order) { o.SKU = "" }, func(o *sale.Order) { o.SKU = "a{b}" }},
		"buyer": {
			func(o *sale.Order) { o.Buyer = "" },
			func(o *sale.Order) { o.Buyer = "\xff" },
			func(o *sale.Order) { o.Buyer = strings.Repeat("b", sale.MaxBuyerID+1) },
		},
		"quantity":   {func(o *sale.Order) { o.Quantity = 0 }, func(o *sale.Order) { o.Quantity = sale.MaxQuantity + 1 }},
		"expires_at": {func(o *sale.Order) { o.AcceptedAt = time.Time{} }, func(o *sale.Order) { o.ExpiresAt = o.AcceptedAt }},
	} {
		for i, f := range spoil {
			o := someOrders(1)[0]
			f(&o)
			var input *sale.InputError
			if err := mq.CheckOrder(o); !errors.As(err, &input) || input.Field != field {
				t.Errorf("%s %d: %v", field, i, err)
			}
		}
	}
	if err := mq.CheckOrder(someOrders(1)[0]); err != nil {
		t.Error(err)
	}
}

// What decodes keeps the limits, and encodes to something that decodes to the same.
func FuzzDecodeEnvelope(f *testing.F) {
	for _, n := range []int{1, 3} {
		body, err := mq.EncodeEnvelope(someOrders(n))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"orders":[{"order_id":"00000000-0000-0000-0000-000000000000","buyer":"\ud800","expires_at":"9999-12-31T23:59:59-01:00"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		orders, err := mq.DecodeEnvelope(mq.EnvelopeType, body)
		if err != nil {
			if orders != nil {
				t.Fatal("orders beside an error")
			}
			return
		}
		if len(orders) == 0 || len(orders) > mq.MaxEnvelopeOrders || len(body) > mq.MaxEnvelopeBytes {
			t.Fatalf("%d orders in %d bytes", len(orders), len(body))
		}
		again, err := mq.EncodeEnvelope(orders)
		if err != nil {
			return // only its length can be too great, JSON escapes more than it must
		}
		back, err := mq.DecodeEnvelope(mq.EnvelopeType, again)
		if err != nil || !reflect.DeepEqual(orders, back) {
			t.Fatalf("%+v came back as %+v, %v", orders, back, err)
		}
	})
}

func BenchmarkDecodeEnvelope(b *testing.B) {
	body, err := mq.EncodeEnvelope(someOrders(mq.MaxEnvelopeOrders))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := mq.DecodeEnvelope(mq.EnvelopeType, body); err != nil {
			b.Fatal(err)
		}
	}
}
