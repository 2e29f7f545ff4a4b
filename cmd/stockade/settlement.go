package main

import (
	"context"

	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/mq"
)

// settlement is what happens to orders after they were accepted, wired.
type settlement struct {
	creditor *service.Creditor
	settler  *service.Settler
	expirer  *service.Expirer
	burier   *service.Burier
	timeouts *mq.ExpiryConsumer
	letters  *mq.DeadConsumer
}

// newSettlement builds the parts over a node whose stores, flags and toggles are there.
func newSettlement(n *node, deps mq.Deps) *settlement {
	cfg := n.cfg.Service
	s := &settlement{}
	s.creditor = service.NewCreditor(cfg, service.CreditorParts{
		Store: n.db, Ledgers: n.db, Gate: n.gate, Flags: n.flags, Hints: n.gate, Faults: n.faults, Log: n.log,
	})
	s.settler = service.NewSettler(cfg, n.db, n.db, s.creditor, n.faults, n.toggles.Journal)
	s.expirer = service.NewExpirer(cfg, n.db, s.settler, func() bool { return n.toggles.Paused(sale.ToggleExpiry) }, n.log)
	s.burier = service.NewBurier(cfg, n.db, s.settler, mq.NewReplayer(n.cfg.MQ, n.broker), n.faults, n.log)
	s.timeouts = mq.NewExpiryConsumer(n.cfg.MQ, deps, n.broker, s.expirer)
	s.letters = mq.NewDeadConsumer(n.cfg.MQ, deps, n.broker, s.burier)
	return s
}

// loops are what runs until the node ends them.
func (s *settlement) loops() []func(context.Context) {
	return []func(context.Context){s.creditor.Run, s.creditor.Sweep, s.expirer.Run, s.burier.Sweep}
}

func (s *settlement) start() {
	s.timeouts.Start()
	s.letters.Start()
}

// stop lets the consumers finish what they have taken, then the settler what waits. What is credited to the gate after
// that, or not, any node's sweeper finds.
func (s *settlement) stop() {
	s.timeouts.Close()
	s.letters.Close()
	s.settler.Close()
}
