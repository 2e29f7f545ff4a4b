//go:build services

package drill_test

import (
	"testing"
	"time"

	"stockade/biz/sale"
	"stockade/biz/service"
)

// On a cluster the doctor asks every master and knows where the slots are; a master that hangs hides neither the others
// nor anything else.
func TestTheDoctorAsksEveryMaster(t *testing.T) {
	w := newWorld(t)
	cluster := startCluster(t, w, masters)
	w.configure(cluster.addrs(), "shard.cluster: true")
	w.start(1)
	s := w.create(3200, 2, sale.MaxSlots)
	examine := func() map[string]sale.Finding {
		var e service.Examination
		w.must(w.node(0).Read("/admin/v1/doctor?sku="+s.name, &e))
		all := map[string]sale.Finding{}
		for _, f := range e.Findings {
			all[string(f.Check)+" "+f.Subject] = f
		}
		return all
	}
	all := examine()
	for _, master := range cluster.addrs() {
		if f := all["redis.ping "+master]; f.Level == "" || f.Level == sale.LevelFail {
			t.Errorf("%s: %+v in %+v", master, f, all)
		}
	}
	if f := all["sku.placement "+s.name]; f.Level != sale.LevelOK {
		t.Errorf("32 slots on 3 masters: %+v", f)
	}
	if f := all["sku.stock "+s.name]; f.Level != sale.LevelOK {
		t.Errorf("nothing is sold: %+v", f)
	}
	w.step("one master hangs")
	w.ok(cluster.masters[1].Suspend())
	begun := time.Now()
	all = examine()
	w.ok(cluster.masters[1].Resume())
	t.Logf("examined in %v", time.Since(begun).Round(time.Millisecond))
	for i, master := range cluster.addrs() {
		if f := all["redis.ping "+master]; (f.Level == sale.LevelFail) != (i == 1) {
			t.Errorf("%s: %+v", master, f)
		}
	}
	if f := all["mysql.durability mysql"]; f.Level != sale.LevelOK {
		t.Errorf("MySQL is well: %+v", f)
	}
}
