package shard

import (
	"context"
	"errors"

	"stockade/biz/sale"
)

var errUnbuilt = errors.New("not built yet")

func (g *Gate) Held(context.Context, string, sale.Share, sale.OrderID) (sale.PendingTake, error) {
	return sale.PendingTake{}, errUnbuilt
}
func (g *Gate) Drop(context.Context, string, sale.Share, int64) error { return errUnbuilt }
