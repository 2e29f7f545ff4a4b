INSERT INTO sku (id, state, opens_at, closes_at, buyer_limit, payment_window, slots, reserve_pct, token_required,
                 created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
