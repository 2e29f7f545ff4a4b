//go:build services

package drill_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stockade/biz/handler"
	"stockade/biz/sale"
	"stockade/biz/service"
	"stockade/cmd/stockade/proctest"
)

// closeBound is how long nodes may go on answering otherwise after an operator has closed the entrance by file.
const closeBound = 3 * time.Second

// Redis and MySQL are both away. An operator closes the entrance by file on every node, and opens it again when they are
// back; the sale goes on and the books agree.
func TestDrill12TheEntranceClosesWithoutServers(t *testing.T) {
	w := newWorld(t)
	w.step("two nodes with a toggles.file each, one SKU, %d buyers", buyers)
	files := w.startWithFiles(2)
	s := w.create(1_000_000, 2, 8)
	c := w.open(s)
	c.mayClose.Store(true)
	c.awaitWins(50, 30*time.Second)
	winner := request{sku: s.name, buyer: "winner", key: "k", quantity: 1}
	won := c.ask(buyers, w.node(0), winner)
	for ; !won.verdict(); won = c.ask(buyers, w.node(0), winner) {
		pass(retryPause)
	}
	t.Cleanup(func() { // whatever happens, the next drill finds a database
		if !house.mysql.Alive() {
			w.ok(house.mysql.Start())
		}
	})

	w.step("Redis and MySQL are stopped")
	w.must(w.redis.StopWell())
	w.must(house.mysql.StopWell())
	c.isBusy("stopped", time.Second)

	w.step("entrance: closed, into the file of every node")
	written := time.Now()
	for _, path := range files {
		w.must(os.WriteFile(path, []byte("entrance: closed\n"), 0o600))
	}
	for i := range files {
		eventually(t, closeBound+recoveryGrace, fmt.Sprintf("node %d answers PAUSED", i+1), func() bool {
			return c.isPaused(w.node(i), "") && c.isPaused(w.node(i), "k")
		})
	}
	took := time.Since(written)
	t.Logf("every node answers PAUSED %v after the files were written, bound %v", took.Round(time.Millisecond), closeBound)
	if took > closeBound {
		t.Errorf("PAUSED after %v, want at most %v", took, closeBound)
	}
	for i := range files {
		c.staysPaused(w.node(i), winner, won.OrderID)
	}

	w.step("Redis and MySQL are back; the files are removed")
	w.must(house.mysql.Start())
	w.must(w.redis.Start())
	eventually(t, linkBound+recoveryGrace, "a winner is told of the order while the entrance is closed", func() bool {
		a := c.send(w.node(1).Public, winner)
		return a.won() && a.OrderID == won.OrderID && a.replayed
	})
	began := c.h.now()
	c.staysShut(time.Second)
	if after, sold := c.h.firstWin(began); sold {
		t.Errorf("a purchase was accepted %v after the servers were back, with the entrance closed", after)
	}
	for _, path := range files {
		w.must(os.Remove(path))
	}
	c.awaitRecovery("the sale, with the entrance open again,", c.h.now(), rebuildBound)
	c.awaitWins(50, 30*time.Second)

	w.step("the sale ends; audit")
	c.audit(drainBound)
}

// startWithFiles starts nodes that each watch a toggles.file, and returns the paths, of which none is there.
func (w *world) startWithFiles(count int) []string {
	w.t.Helper()
	var paths []string
	var fresh []*proctest.Node
	for i := range count {
		paths = append(paths, filepath.Join(w.dir, fmt.Sprintf("toggles-%d.yaml", i+1)))
		fresh = append(fresh, w.launch("toggles.file="+paths[i]))
	}
	for _, n := range fresh {
		n.AwaitReady()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes = append(w.nodes, fresh...)
	return paths
}

// isPaused asks a node once, without a trace in the history: nothing can come of it.
func (c *crowd) isPaused(n *proctest.Node, key string) bool {
	c.strangers++
	a := c.send(n.Public, request{sku: c.w.skus[0].name, buyer: fmt.Sprint("stranger-", c.strangers), key: key, quantity: 1})
	if a.won() {
		c.w.t.Errorf("accepted without a server: %v", a)
	}
	return a.paused() && (a.Outcome == unknownly) == (key != "")
}

func (a answer) paused() bool {
	return a.Status == http.StatusConflict && a.Code == sale.NotOnSale.String() && a.Reason == string(sale.ReasonPaused)
}

// staysPaused looks at everything that a node with a closed entrance and no servers has to answer.
func (c *crowd) staysPaused(n *proctest.Node, winner request, order string) {
	t := c.w.t
	t.Helper()
	for range 5 {
		if !c.isPaused(n, "") || !c.isPaused(n, "k") {
			t.Errorf("node %s does not go on answering PAUSED", n.Name)
		}
	}
	if a := c.send(n.Public, winner); !a.paused() || a.Outcome != unknownly || a.OrderID != order {
		t.Errorf("node %s: a winner who asks again is told %v, want PAUSED and the order %s that may exist", n.Name, a, order)
	}
	if a := c.sendTo(n.Public+"/v1/skus/"+winner.sku+"/token", winner, ""); !a.paused() {
		t.Errorf("node %s: a purchase token is answered %v", n.Name, a)
	}
	var figures handler.NodeJSON
	if err := n.Read("/admin/v1/node", &figures); err != nil {
		t.Error(err)
	}
	if figures.TogglesFile.State != service.ToggleFileRead || figures.TogglesFile.Toggles != 1 || figures.Results[sale.NotOnSale.String()] < 10 {
		t.Errorf("node %s: figures %+v", n.Name, figures)
	}
	if list := string(n.CLI("toggle", "list")); !strings.Contains(list, `"closed"`) || !strings.Contains(list, `"file"`) {
		t.Errorf("node %s: stockade toggle list says\n%s", n.Name, list)
	}
}

// staysShut lets time go by in which the crowd keeps asking.
func (c *crowd) staysShut(d time.Duration) {
	c.w.t.Helper()
	paused := c.h.count(sale.NotOnSale.String())
	pass(d)
	if c.h.count(sale.NotOnSale.String()) == paused {
		c.w.t.Error("nobody asked while the entrance was closed")
	}
}
