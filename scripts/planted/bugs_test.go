package planted

// Places of tests that see many bugs.
const (
	servicePackage = "./biz/service"
	modelTests     = "^TestModelEmbedded$"
	shardPackage   = "./shard"
	storePackage   = "./store"
	mqPackage      = "./mq"
)

var (
	// asTheyCome leaves out the search for the shortest history that fails.
	asTheyCome = []string{"-rapid.shrinktime=0s"}
	// manyHistories checks as many as the tests with real servers do.
	manyHistories = append([]string{"-tags=services"}, asTheyCome...)
)

var bugs = []bug{
	{
		name: "ack before commit", file: "biz/service/writer.go",
		edits: []edit{
			{"	decisions := w.promise(ctx, takes)\n	for i, call := range group {\n		call.Answer(decisions[i], nil)\n	}\n", `
	for _, call := range group {
		now := time.Now().UTC().Truncate(time.Millisecond)
		call.Answer(sale.Decision{Outcome: sale.Promised, Order: sale.Order{
			ID: call.Query.Order, SKU: call.Query.SKU, Buyer: call.Query.Buyer, Quantity: call.Query.Quantity,
			State: sale.OrderQueued, AcceptedAt: now, ExpiresAt: now.Add(call.Query.Window),
		}}, nil)
	}
	decisions := w.promise(ctx, takes)
`},
		},
		pkg: servicePackage, tests: modelTests, flags: manyHistories,
	},
	{
		name: "replay answered without its row", file: "biz/service/purchase.go",
		edits: []edit{{"	case adm.Decided: ", `
	case adm.Verdict == sale.Known:
		now := time.Now().UTC().Truncate(time.Millisecond)
		return sale.Result{Code: sale.Accepted, Replayed: true, Order: sale.Order{
			ID: p.id, SKU: p.SKU, Buyer: p.Buyer, Quantity: p.Quantity,
			State: sale.OrderQueued, AcceptedAt: now, ExpiresAt: now.Add(p.listing.PaymentWindow),
		}}, false, nil
	case adm.Decided: `}},
		pkg: servicePackage, tests: modelTests, flags: manyHistories,
	},
	{
		name: "dedupe skipped", file: "shard/lua/admit.lua",
		edits: []edit{{"if state and state ~= 100 then", "if false then"}},
		pkg:   shardPackage, tests: "^TestMiniredis$/^Verdicts$",
	},
	{
		name: "release not idempotent", file: "shard/lua/settle.lua",
		edits: []edit{{"  if is_undecided(entry) then\n    if", "  if is_undecided(entry) or (entry and entry.state == 'd' and not kept[i]) then\n    if"}},
		pkg:   shardPackage, tests: "^TestMiniredis$/^Settle$",
	},
	{
		name: "greater for greater or equal", file: "shard/lua/admit.lua",
		edits: []edit{{"elseif left < quantity then", "elseif left <= quantity then"}},
		pkg:   shardPackage, tests: "^TestMiniredis$/^Verdicts$",
	},
	{
		name: "epoch not compared", file: "shard/lua/admit.lua",
		edits: []edit{{"if stock[1] ~= ARGV[1] or stock[2] ~= '0' then", "if stock[2] ~= '0' then"}},
		pkg:   shardPackage, tests: "^TestMiniredis$/^Verdicts$",
	},
	{
		name: "seal skipped", file: "shard/lua/seal.lua",
		edits: []edit{{"'epoch', ARGV[1], 'sealed', 1, 'before', before)", "'epoch', ARGV[1], 'before', before)"}},
		pkg:   shardPackage, tests: "^TestMiniredis$/^Verdicts$",
	},
	{
		name: "acknowledged mark lost", file: "shard/lua/admit.lua",
		edits: []edit{{"if state == 112 and mark == 1 then", "if false then"}},
		pkg:   shardPackage, tests: "^TestMiniredis$/^MarkedLater$",
	},
	{
		name: "credit applied across a reshare", file: "shard/lua/credit.lua",
		edits: []edit{{"if epoch ~= ARGV[1] or sealed then", "if sealed then"}},
		pkg:   shardPackage, tests: "^TestMiniredis$/^Credit$",
	},
	{
		name: "ledger guard left out", file: "store/sql/sqlite/ledger_promise.sql",
		edits: []edit{{" AND promised + ? <= total", " AND ? > 0"}},
		pkg:   storePackage, tests: "^TestSQLite$/^PromiseOutcomes$",
	},
	{
		name: "limit query left out", file: "store/promise.go",
		edits: []edit{{"		if units > limits[buyer] {\n", "		if units > limits[buyer] && false {\n"}},
		pkg:   storePackage, tests: "^TestSQLite$/^LimitRace$",
	},
	{
		name: "snapshot taken outside the lock", file: "store/reshare.go",
		edits: []edit{
			{"	if err := snap.open(ctx); err != nil {\n		return err\n	}\n	return t.commit(ctx)\n", "	return t.commit(ctx)\n"},
			{"	return snap, nil\n", "	time.Sleep(2 * time.Millisecond)\n	return snap, snap.open(ctx)\n"},
			{"	\"fmt\"\n", "	\"fmt\"\n	\"time\"\n"},
		},
		pkg: storePackage, tests: "^TestSQLite$/^ReshareFencesPromises$",
	},
	{
		name: "sweeper without lock", file: "store/ledger.go",
		edits: []edit{{
			"	err = db.writing(ctx, func(t *txn) error {\n		var epoch int64\n",
			"	err = func(work func(*sql.DB) error) error { return work(db.read) }(func(t *sql.DB) error {\n		var epoch int64\n",
		}},
		pkg: storePackage, tests: "^TestSQLite$/^DecidedWaitsForPromises$",
	},
	{
		name: "two restocks", file: "store/settlement_decide.go",
		edits: []edit{{
			"	case o.order.State == sale.OrderClosed:\n		e.answer(sale.Already, o.order)\n	case o.order.State == sale.OrderPaid:",
			"	case o.order.State == sale.OrderPaid:",
		}},
		pkg: storePackage, tests: "^TestSQLite$/^Settle(Outcomes|Repeats|sLikeModel)",
	},
	{
		name: "late payment accepted", file: "store/settlement_decide.go",
		edits: []edit{{"	if o.order.State == sale.OrderCreated {\n		o.order.State = sale.OrderPaid", "	if o.order.State != sale.OrderPaid {\n		o.order.State = sale.OrderPaid"}},
		pkg:   storePackage, tests: "^TestSQLite$/^Settle(Outcomes|Repeats|sLikeModel)",
	},
	{
		name: "expiry moved", file: "store/consume.go",
		edits: []edit{{"millis(o.AcceptedAt), millis(o.ExpiresAt), now,", "millis(o.AcceptedAt), now + o.ExpiresAt.Sub(o.AcceptedAt).Milliseconds(), now,"}},
		pkg:   storePackage, tests: "^TestSQLite$/^InsertOrders$",
	},
	{
		name: "expired too early", file: "store/settlement_decide.go",
		edits: []edit{{"	case e.Kind == sale.Expire && o.order.ExpiresAt.After(s.now):\n		e.answer(sale.NotDue, o.order)\n", ""}},
		pkg:   storePackage, tests: "^TestSQLite$/^Settle(Outcomes|Repeats|sLikeModel)",
	},
	{
		name: "paid order closed", file: "store/settlement_decide.go",
		edits: []edit{{"	case o.order.State == sale.OrderPaid:\n		e.answer(sale.IsPaid, o.order)\n	case e.Kind == sale.Expire", "	case e.Kind == sale.Expire"}},
		pkg:   storePackage, tests: "^TestSQLite$/^Settle(Outcomes|Repeats|sLikeModel)",
	},
	{
		name: "lost return ignored", file: "mq/memory.go",
		edits: []edit{{"		return Returned\n", "		return Confirmed\n"}},
		pkg:   mqPackage, tests: "^TestMemoryBroker$/^Unroutable$",
	},
	{
		name: "credited at the wrong share", file: "biz/service/creditor_round.go",
		edits: []edit{{"	if r.Taken < l.Ledger.LaidEpoch {", "	if false {"}},
		pkg:   servicePackage, tests: "Settle|Credit",
	},
	{
		name: "acknowledged take dropped by a reshare", file: "biz/service/reshare_journal.go",
		edits: []edit{{"		case !found && take.Acknowledged:", "		case false:"}},
		pkg:   servicePackage, tests: "^TestModelDurability$", flags: asTheyCome,
	},
}
