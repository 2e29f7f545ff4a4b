package main

import (
	"context"
	"encoding/json"
	"net/http"

	"stockade/biz/handler"
	"stockade/biz/sale"
)

func (c *cli) showShares(ctx context.Context, cl *client, path string) error {
	raw, err := cl.call(ctx, http.MethodGet, path+"/shares", nil)
	if err != nil {
		return err
	}
	var answer handler.SharesJSON
	if err := json.Unmarshal(raw, &answer); err != nil || answer.Shares == nil {
		return notWhat("a list of shares")
	}
	r := result{header: []string{"SHARE", "LEFT", "PENDING", "INITIAL", "EPOCH", "CHANGES", "STATE"}}
	for _, s := range answer.Shares {
		state := "open"
		switch {
		case s.Gone:
			state = "gone"
		case s.Sealed:
			state = "sealed"
		}
		r.add(s, s.Share, whole(s.Left), whole(s.Pending), whole(s.Initial), whole(s.Epoch), whole(s.Changes), state)
	}
	return c.print(r)
}

func (c *cli) showBooks(ctx context.Context, cl *client, path string) error {
	raw, err := cl.call(ctx, http.MethodGet, path+"/books", nil)
	if err != nil {
		return err
	}
	var b sale.Books
	if err := json.Unmarshal(raw, &b); err != nil {
		return notWhat("a SKU's books")
	}
	return c.fields(raw,
		[2]string{"total", whole(b.Total)},
		[2]string{"promised", whole(b.Promised)},
		[2]string{"sold", whole(b.Sold)},
		[2]string{"live units", whole(b.LiveUnits)},
		[2]string{"live orders", whole(b.LiveOrders)},
		[2]string{"paid units", whole(b.PaidUnits)},
		[2]string{"order rows", whole(b.Orders)},
		[2]string{"not yet written", whole(b.Missing)},
		[2]string{"uncredited units", whole(b.Uncredited)},
		[2]string{"strangers", whole(b.Strangers)},
		[2]string{"buyers over limit", whole(b.OverLimit)},
		[2]string{"agree", agreement(b)},
	)
}

func agreement(b sale.Books) string {
	switch {
	case !b.Agree():
		return "NO"
	case b.Missing > 0:
		return "yes, with orders on their way"
	}
	return "yes"
}
