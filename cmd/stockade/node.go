package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"stockade/biz/auth"
	"stockade/biz/router"
	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/cache"
	"stockade/conf"
	"stockade/limiter"
	"stockade/mq"
	"stockade/shard"
	"stockade/store"
)

// restoreEvery is the pause between tries to bring the gate back to the truth at start-up.
const restoreEvery = time.Second

// node is one Stockade process: every part, wired. start begins what works in the background, stop ends everything in
// the order in which the parts need each other.
type node struct {
	cfg       conf.Config
	log       *slog.Logger
	faults    sale.Faults // for the parts that have durable steps
	db        *store.DB
	gate      *shard.Gate
	broker    mq.Broker
	relay     *mq.Relay
	consumers *mq.Consumers
	catalogue *cache.Catalogue
	flags     *cache.Flags
	toggles   *service.Toggles
	guard     *protection
	results   *service.Results
	operators *auth.AdminTokens
	audit     *service.AuditLog
	buyers    *auth.Buyers
	writer    *service.Writer
	watcher   *service.Watcher
	journal   *service.JournalSweeper
	restorer  *service.Restorer
	healer    *service.Healer
	skus      *service.SKUs
	settling  *settlement
	health    *health
	listeners *router.Listeners
	servers   *router.Servers

	restored   chan struct{} // closed when the gate matches the truth
	background sync.WaitGroup
	endLoops   context.CancelFunc
}

// takePorts is the first thing that a start does: a busy port ends it before anything else hears of this process.
func takePorts(cfg conf.Config) (*router.Listeners, error) {
	listeners, err := router.Listen(cfg.Router)
	if err != nil {
		return nil, fmt.Errorf("router.%w", err)
	}
	return listeners, nil
}

// newNode opens the stores and builds the parts. The listeners become the node's, also when it fails; nothing is served
// on them before start. faults is what every part asks between its steps.
func newNode(
	ctx context.Context, cfg conf.Config, log *slog.Logger, listeners *router.Listeners, faults sale.Faults,
) (n *node, err error) {
	n = &node{
		cfg: cfg, log: log, listeners: listeners, faults: faults, restored: make(chan struct{}), endLoops: func() {},
	}
	defer func(half *node) {
		if err != nil {
			_ = half.closeClients() // the reason to give up counts
		}
	}(n)
	name, err := cfg.Node()
	if err != nil {
		return nil, err
	}
	if n.operators, err = auth.NewAdminTokens(cfg.Auth.AdminTokensFile, time.Now, log); err != nil {
		return nil, fail(exitConfig, err)
	}
	if n.buyers, err = auth.NewBuyers(cfg.Auth, auth.BuyerParts{Now: time.Now, Log: log}); err != nil {
		return nil, fail(exitConfig, err)
	}
	if err = service.CheckToggleFile(cfg.Toggles.File); err != nil {
		return nil, fail(exitConfig, err)
	}
	router.UseLogger(log)
	shard.LogTo(log)
	if n.db, err = store.Open(ctx, cfg.Store, store.Options{Node: name, Now: time.Now, Faults: faults}); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if n.guard, err = newProtection(n); err != nil {
		return nil, err
	}
	if n.gate, err = shard.Open(ctx, cfg.Shard, shard.WithBreaker(n.guard.lane)); err != nil {
		return nil, fmt.Errorf("shard: %w", err)
	}
	deps := mq.Deps{
		Log: log, Counters: &mq.Counters{}, Faults: faults, Breaker: n.guard.breakers.Publish(),
		Paused: func(toggle string) bool { return n.toggles.Paused(toggle) },
	}
	if n.broker, err = mq.Open(cfg.MQ, deps); err != nil {
		return nil, fmt.Errorf("mq: %w", err)
	}
	if cfg.MQ.Driver == mq.DriverMemory {
		// This broker forgot whatever it was told before: its orders have to be told again.
		if _, err := n.db.RenewAll(ctx); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
	}
	n.relay = mq.NewRelay(cfg.MQ, deps, n.broker, n.db)
	n.consumers = mq.NewConsumers(cfg.MQ, deps, n.broker, n.db)
	return n, n.buildUseCases(deps)
}

func (n *node) buildUseCases(deps mq.Deps) (err error) {
	cfg := n.cfg
	if n.catalogue, err = cache.NewCatalogue(cfg.Cache, n.db.Listing, time.Now); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	if n.flags, err = cache.NewFlags(cfg.Cache, time.Now); err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	recent, err := cache.NewRecent(cfg.Cache)
	if err != nil {
		return fmt.Errorf("cache: %w", err)
	}
	n.audit = service.NewAuditLog(n.db, n.log)
	n.toggles = service.NewToggles(service.ToggleParts{
		Store: n.db, Hints: n.gate, File: cfg.Toggles.File, Now: time.Now, Log: n.log,
	})
	n.results = &service.Results{}
	n.writer = service.NewWriter(cfg.Service, service.WriterParts{
		Promiser: n.db, Gate: n.gate, Relay: n.relay, Breaker: n.guard.breakers.Outbox(), Faults: n.faults,
	})
	n.watcher = service.NewWatcher(cfg.Service, service.WatcherParts{
		Gate: n.gate, Ledgers: n.db, Flags: n.flags, Catalogue: n.catalogue, Log: n.log,
	})
	n.journal = service.NewJournalSweeper(cfg.Service, service.JournalParts{
		Ledgers: n.db, Promiser: n.db, Gate: n.gate, Watcher: n.watcher, Relay: n.relay,
		Faults: n.faults, Log: n.log,
		Short: func(sku string) { n.healer.Ask(sku, service.WhyShort, service.AnyEpoch) },
	})
	resharer := service.NewResharer(cfg.Service, service.ResharerParts{
		Ledgers: n.db, Gate: n.gate, Layer: n.gate, Hints: n.gate, Relay: n.relay, Faults: n.faults, Log: n.log,
	})
	n.restorer = service.NewRestorer(n.db, n.gate, n.gate, resharer, n.audit, n.log)
	conservation := service.NewConservation(service.ConservationParts{
		Ledgers: n.db, Gate: n.gate, Books: n.db, Hints: n.gate, Now: time.Now, Log: n.log,
		PauseOnUnexplained: cfg.Service.CloseOnUnexplainedDrift, Audit: n.audit,
	})
	n.healer = service.NewHealer(service.HealerParts{
		Ledgers: n.db, Gate: n.gate, Layer: n.gate, Resharer: resharer, Conservation: conservation,
		Active: n.watcher.Active, Paused: func() bool { return n.toggles.Paused(sale.ToggleReshare) },
		Fallback: n.toggles.Fallback, Audit: n.audit, Now: time.Now, Log: n.log,
	})
	n.skus = service.NewSKUs(service.SKUParts{
		Ledgers: n.db, Gate: n.gate, Resharer: resharer, Catalogue: n.catalogue, Flags: n.flags, Hints: n.gate,
		Books: n.db, Layer: n.gate, Closeouts: n.db, Conservation: conservation, Faults: n.faults, Now: time.Now, Log: n.log,
	})
	n.settling = newSettlement(n, deps)
	n.health = newHealth(n.db.Ping, n.gate.Ping)
	sales := service.NewSales(cfg.Service, service.SalesParts{
		Catalogue: n.catalogue, Flags: n.flags, Gate: n.gate, Writer: n.writer, Orders: n.db, Recent: recent,
		Watcher: n.watcher, Toggles: n.toggles, Healer: n.healer, Results: n.results, Backlogged: n.guard.backlog.Open,
		Faults: n.faults, Now: time.Now, Log: n.log,
	})
	n.servers = router.New(n.listeners, router.Parts{
		Sales: sales, Orders: sales, Stock: sales,
		Settlements: n.settling.settler, DeadLetters: n.settling.burier,
		Toggles: service.NewLevers(n.toggles, n.skus, n.log), Results: n.results, Node: n.figures(),
		Operators: n.operators, Audit: n.audit, AuditLog: n.audit, Buyers: n.buyers,
		Tokens: auth.NewPurchaseTokens(cfg.Auth.PurchaseTokenSecrets, time.Duration(cfg.Auth.PurchaseTokenMs)*time.Millisecond, time.Now),
		SKUs:   n.skus, Upkeep: n.skus, Health: n.health, Doctor: n.newDoctor(conservation), Limits: routerLimits{n.guard.buckets}, Load: n.guard.load, Winners: recent, Now: time.Now, Log: n.log,
	})
	return nil
}

// start begins the background work, brings the gate back to the truth, and serves. The returned channel gets the error
// that ended serving.
func (n *node) start() <-chan error {
	ctx, cancel := context.WithCancel(context.Background())
	n.endLoops = cancel
	n.toggles.Load(ctx)
	n.relay.Start()
	n.consumers.Start()
	n.settling.start()
	loops := []func(context.Context){n.watcher.Run, n.journal.Run, n.toggles.Run, n.operators.Run, n.buyers.Run, n.health.Run, n.listen, n.restore, n.healer.Run}
	loops = append(loops, n.guard.loops(n.toggles.RateScale)...)
	for _, loop := range append(loops, n.settling.loops()...) {
		n.background.Go(func() { loop(ctx) })
	}
	served := make(chan error, 1)
	n.background.Go(func() { served <- n.servers.Run() })
	return served
}

// listen takes hints of other nodes: what this node remembers of a SKU is out of date.
func (n *node) listen(ctx context.Context) {
	n.gate.Listen(ctx, func(sku string) {
		n.toggles.Hint()
		if sku != service.ToggleHint {
			n.catalogue.Forget(sku)
			n.flags.Clear(sku)
		}
	})
}

// restore reshares what does not match, until all of it does. The node is ready once every SKU was looked at: those
// whose shares match sell, the others are BUSY here as everywhere, and a balancer without targets would help nobody.
func (n *node) restore(ctx context.Context) {
	for {
		err := n.restorer.Run(ctx)
		if err == nil || errors.Is(err, service.ErrPartlyRestored) {
			n.health.ready()
		}
		if err == nil {
			close(n.restored)
			return
		}
		n.log.WarnContext(ctx, "gate not restored, trying again", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(restoreEvery):
		}
	}
}

// closeClients closes what newNode opened, as far as it got.
func (n *node) closeClients() error {
	var errs []error
	if n.servers == nil {
		n.listeners.Close()
	}
	if n.broker != nil {
		errs = append(errs, n.broker.Close())
	}
	if n.gate != nil {
		errs = append(errs, n.gate.Close())
	}
	if n.guard != nil {
		n.guard.breakers.Close()
	}
	if n.catalogue != nil {
		n.catalogue.Close()
	}
	if n.db != nil {
		errs = append(errs, n.db.Close())
	}
	return errors.Join(errs...)
}

// routerLimits lets the router ask the limiter without knowing it.
type routerLimits struct{ *limiter.Limiter }

func (b routerLimits) Global() router.Verdict { return router.Verdict(b.Limiter.Global()) }

func (b routerLimits) Address(addr netip.Addr) router.Verdict {
	return router.Verdict(b.Limiter.Address(addr))
}

func (b routerLimits) Buyer(id string) router.Verdict { return router.Verdict(b.Limiter.Buyer(id)) }
