SELECT s.id, s.state, s.opens_at, s.closes_at, s.buyer_limit, s.payment_window, s.slots, s.reserve_pct,
       s.token_required,
       l.epoch, l.live_epoch, l.laid_epoch, l.laid_gate, l.mode, l.state, l.progress_at, l.total, l.promised, l.sold,
       l.changes, l.laid_slots
FROM sku s JOIN ledger l ON l.sku = s.id
WHERE s.id = ?
