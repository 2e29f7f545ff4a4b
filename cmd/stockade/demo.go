package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"stockade/biz/sale"
	"stockade/conf"
)

// demoSettle bounds the wait for the last order row after the last answer.
const demoSettle = 10 * time.Second

// errBooks ends a demo whose books do not agree.
var errBooks = errors.New("the books do not agree")

// rush says how a demo runs.
type rush struct {
	buyers      int
	units       int64
	connections int
}

// runDemo lets all buyers go for the units at once over HTTP, against an embedded node of its own, and audits the end.
func runDemo(ctx context.Context, cfg conf.Config, log *slog.Logger, r rush, progress io.Writer) (rep report, err error) {
	dir, err := os.MkdirTemp("", "stockade-demo-")
	if err != nil {
		return rep, err
	}
	defer os.RemoveAll(dir)
	cfg.Store.Path = filepath.Join(dir, "demo.db")
	cfg.Router.Public, cfg.Router.Admin = "127.0.0.1:0", "127.0.0.1:0"
	e, err := newEmbedded(ctx, cfg, log)
	if err != nil {
		return rep, err
	}
	e.start()
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout(cfg))
		defer cancel()
		err = errors.Join(err, e.stop(bounded))
	}()
	<-e.restored
	if err := e.seed(ctx, demoSKU, r.units); err != nil {
		return rep, err
	}
	answers := r.run(ctx, "http://"+e.servers.PublicAddr().String(), progress)
	if ctx.Err() != nil {
		return rep, ctx.Err()
	}
	return e.audit(ctx, answers)
}

// run sends every buyer at once and returns all answers.
func (r rush) run(ctx context.Context, base string, progress io.Writer) *answers {
	answered := showProgress(progress, "buyers answered", r.buyers)
	shop := newShopper(base, r.connections)
	defer shop.close()
	all := newAnswers()
	start := make(chan struct{})
	var buyers sync.WaitGroup
	for i := range r.buyers {
		buyers.Go(func() {
			<-start
			all.add(shop.buy(ctx, fmt.Sprintf("buyer-%d", i)))
			answered()
		})
	}
	close(start)
	buyers.Wait()
	return all
}

// audit waits until the accepted orders are written and compares what buyers were told with what the books say.
func (e *embedded) audit(ctx context.Context, told *answers) (report, error) {
	rep := told.report()
	deadline := time.Now().Add(demoSettle)
	var books sale.Books
	for {
		var err error
		if books, err = e.skus.Books(ctx, demoSKU); err != nil {
			return rep, err
		}
		if books.Missing == 0 || time.Now().After(deadline) {
			break
		}
		select {
		case <-ctx.Done():
			return rep, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	for _, won := range told.won {
		order, err := e.db.Order(ctx, won.buyer, won.id)
		switch {
		case errors.Is(err, sale.ErrNotFound) || (err == nil && order.State != sale.OrderCreated):
			rep.Lost++
		case err != nil:
			return rep, err
		}
	}
	figures, err := e.skus.Shares(ctx, demoSKU)
	if err != nil {
		return rep, err
	}
	var left int64
	for _, f := range figures {
		left += f.Left
	}
	rep.Orders = books.Orders
	rep.Oversold = max(0, books.LiveUnits-books.Total)
	rep.Duplicate = books.Orders - books.LiveOrders + books.Missing
	if rep.Other+rep.SoldOut > 0 {
		rep.Stranded = left
	}
	rep.Agree = books.Agree() && rep.Lost == 0 && rep.Duplicate == 0 && books.LiveOrders == int64(rep.Accepted) && books.Total-books.Promised == left
	return rep, nil
}
