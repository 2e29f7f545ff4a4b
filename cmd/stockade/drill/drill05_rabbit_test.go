//go:build services

package drill_test

import (
	"testing"
	"time"
)

// RabbitMQ is stopped, killed, blocked by its memory alarm; its connections are cut while confirms are under way.
func TestDrill05RabbitIsUnwell(t *testing.T) {
	w := newWorld(t)
	w.pace = time.Second // what waits has to fit a slow machine
	w.step("two nodes, two SKUs, %d buyers", buyers)
	w.start(2)
	c := w.open(w.create(1_000_000, 2, 8), w.create(1_000_000, 2, 8))
	c.awaitWins(50, 30*time.Second)
	t.Cleanup(func() { // whatever happens, the next drill finds a broker
		if !house.rabbit.Alive() {
			w.ok(house.rabbit.Start())
		}
	})

	if long() { // a start takes several seconds, and a kill is the harder of the two
		w.step("RabbitMQ is stopped")
		w.must(house.rabbit.StopWell())
		c.sellsThrough("stopped", time.Minute)
		w.must(house.rabbit.Start())
		c.awaitDrained("RabbitMQ, stopped and started,")
	}

	w.step("RabbitMQ is killed")
	house.rabbit.Kill()
	c.sellsThrough("killed", span(time.Second, 10*time.Second))
	w.must(house.rabbit.Start())
	c.awaitDrained("RabbitMQ, killed and started,")

	w.step("memory alarm")
	w.must(house.rabbit.Control("set_vm_memory_high_watermark", "absolute", "1MB"))
	c.sellsThrough("memory alarm", span(2*time.Second, 20*time.Second))
	w.must(house.rabbit.Control("set_vm_memory_high_watermark", "0.6"))
	c.awaitDrained("RabbitMQ, out of memory and well again,")

	w.step("connections are cut, again and again, while confirms are under way")
	for range 5 {
		w.toRabbit.Down()
		w.toRabbit.Up()
		c.sellsThrough("cut", span(300*time.Millisecond, 2*time.Second))
	}
	c.awaitDrained("RabbitMQ, cut off and back,")

	w.step("the sale ends; audit")
	c.audit(drainBound)
}
