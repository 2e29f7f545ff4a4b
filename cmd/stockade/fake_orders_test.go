package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

func (f *fakeAPI) cancelOrder(w http.ResponseWriter, r *http.Request) {
	f.note(r)
	for i := range f.orders {
		if o := &f.orders[i]; o.ID.String() == r.PathValue("id") {
			if o.State == sale.OrderPaid {
				refuse(w, 409, "ORDER_PAID", "", "")
				return
			}
			o.State, o.Reason = sale.OrderClosed, sale.ReasonCancelled
		}
	}
	f.showOrder(w, r)
}

// pay keeps what a callback was signed with.
func (f *fakeAPI) pay(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Order sale.OrderID `json:"order_id"`
	}
	raw, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(raw))
	f.note(r)
	f.signed = append(f.signed, r.Header)
	_ = json.Unmarshal(raw, &body)
	for i := range f.orders {
		if o := &f.orders[i]; o.ID == body.Order {
			o.State = sale.OrderPaid
			reply(w, 200, o)
			return
		}
	}
	refuse(w, 404, "ORDER_NOT_FOUND", "id", "")
}

func (f *fakeAPI) listDead(w http.ResponseWriter, r *http.Request) {
	page := handler.DeadLetterPage{DeadLetters: []sale.DeadLetter{}}
	query := r.URL.Query()
	after, _ := strconv.ParseInt(query.Get("after"), 10, 64)
	for _, d := range f.letters {
		if d.Seq > after && (query.Get("state") == "" || query.Get("state") == string(d.State)) &&
			(query.Get("sku") == "" || query.Get("sku") == d.SKU) && len(page.DeadLetters) < f.pageSize {
			d.Body = nil
			page.DeadLetters = append(page.DeadLetters, d)
			page.Next = strconv.FormatInt(d.Seq, 10)
		}
	}
	if len(page.DeadLetters) < f.pageSize {
		page.Next = ""
	}
	reply(w, 200, page)
}

func (f *fakeAPI) letter(r *http.Request) *sale.DeadLetter {
	for i := range f.letters {
		if strconv.FormatInt(f.letters[i].Seq, 10) == r.PathValue("seq") {
			return &f.letters[i]
		}
	}
	return nil
}

func (f *fakeAPI) showDead(w http.ResponseWriter, r *http.Request) {
	if d := f.letter(r); d != nil {
		reply(w, 200, d)
		return
	}
	refuse(w, 404, "DEAD_LETTER_NOT_FOUND", "seq", "")
}

func (f *fakeAPI) handleDead(w http.ResponseWriter, r *http.Request) {
	f.note(r)
	to := map[string]sale.DeadState{"replay": sale.DeadReplayed, "drop": sale.DeadCompensated}
	if d := f.letter(r); d != nil && d.State != sale.DeadOpen {
		refuse(w, 409, "DEAD_LETTER_HANDLED", "", "it is "+string(d.State))
		return
	} else if d != nil {
		d.State = to[r.PathValue("move")]
	}
	f.showDead(w, r)
}
