package store

import (
	"context"
	"errors"

	"stockade/biz/sale"
)

var errUnbuilt = errors.New("not built yet")

func (db *DB) BypassGate(context.Context, string) error           { return errUnbuilt }
func (db *DB) BuyersOf(context.Context, string, string, int) ([]string, error) {
	return nil, errUnbuilt
}

func (db *DB) CheckLedger(context.Context, string) (sale.LedgerCheck, error) {
	return sale.LedgerCheck{}, errUnbuilt
}
func (db *DB) CompareOutbox(context.Context, string, int64, int) ([]sale.Discrepancy, int64, error) {
	return nil, 0, errUnbuilt
}

func (db *DB) CompareOrders(context.Context, string, sale.OrderCursor, int) ([]sale.Discrepancy, sale.OrderCursor, bool, error) {
	return nil, sale.OrderCursor{}, false, errUnbuilt
}

func (db *DB) CorrectLedger(context.Context, string) (sale.LedgerCheck, error) {
	return sale.LedgerCheck{}, errUnbuilt
}

func (db *DB) CorrectOrder(context.Context, string, sale.Discrepancy) (bool, error) {
	return false, errUnbuilt
}
func (db *DB) RecordDead(context.Context, sale.DeadLetter) (int64, error) {
	return 0, errUnbuilt
}

func (db *DB) DeadLetters(context.Context, sale.DeadFilter) ([]sale.DeadLetter, error) {
	return nil, errUnbuilt
}

func (db *DB) DeadLetter(context.Context, int64) (sale.DeadLetter, error) {
	return sale.DeadLetter{}, errUnbuilt
}
func (db *DB) HandleDead(context.Context, int64, sale.DeadState, string) error { return errUnbuilt }
func (db *DB) Unfinished(context.Context, string) (sale.Unfinished, error) {
	return sale.Unfinished{}, errUnbuilt
}
func (db *DB) CloseOut(context.Context, string, []byte) error         { return errUnbuilt }
func (db *DB) CloseoutReport(context.Context, string) ([]byte, error) { return nil, errUnbuilt }
func (db *DB) Archive(context.Context, string, int) (int, error)      { return 0, errUnbuilt }
func (db *DB) Toggles(context.Context) ([]sale.Toggle, error)         { return nil, errUnbuilt }
func (db *DB) SetToggle(context.Context, sale.Toggle) error           { return errUnbuilt }
