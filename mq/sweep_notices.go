package mq

import (
	"context"
	"fmt"
	"strconv"

	"stockade/biz/sale"
)

// NoticeType is the content type of a notice: an object with the field orders and, when the notice is about a payment,
// payment_id.
const NoticeType = "application/vnd.stockade.notice+json; version=1"

type noticeBody struct {
	Orders  []sale.Order `json:"orders"`
	Payment string       `json:"payment_id,omitempty"`
}

// sweepNotices publishes notices, one message each, and deletes those that the broker has. Nobody need listen: a notice
// that no queue takes counts as delivered.
func (r *Relay) sweepNotices() {
	age := ms(r.cfg.NoticeSweepAfterMs)
	r.sweepEvery("notices", age, func(ctx context.Context) (bool, error) {
		if r.held() || !r.broker.Ready() {
			return false, nil
		}
		claim, cancel := r.storeContext(ctx)
		notices, err := r.outbox.ClaimNotices(claim, age, r.cfg.SweepBatch)
		cancel()
		if err != nil || len(notices) == 0 {
			return false, err
		}
		delivered, err := r.publishNotices(ctx, notices)
		if err != nil {
			return false, err
		}
		if len(delivered) > 0 {
			if err := r.deps.Faults.At(ctx, sale.NoticePublished); err != nil {
				return false, err
			}
			forget, cancel := r.storeContext(ctx)
			defer cancel()
			if err := r.outbox.DeleteNotices(forget, delivered); err != nil {
				return false, err
			}
		}
		return len(delivered) == len(notices), nil // else the broker is in trouble, and the rest can wait
	})
}

// publishNotices waits for every outcome and returns the seqs of the notices that the broker has.
func (r *Relay) publishNotices(ctx context.Context, notices []sale.Notice) ([]int64, error) {
	msgs := make([]Message, len(notices))
	for i, n := range notices {
		body, err := strictJSON.Marshal(noticeBody{n.Orders, n.Payment})
		if err != nil {
			return nil, fmt.Errorf("encode notice %d: %w", n.Seq, err)
		}
		msgs[i] = Message{
			Exchange:    r.names.Events,
			Key:         n.Topic,
			ID:          "notice-" + strconv.FormatInt(n.Seq, 10),
			ContentType: NoticeType,
			Body:        body,
		}
	}
	var delivered []int64
	for i, o := range publishAll(ctx, r.broker, msgs) {
		if o == Confirmed {
			delivered = append(delivered, notices[i].Seq)
		}
	}
	return delivered, nil
}
