package main

import (
	"stockade/biz/handler"
	"stockade/biz/service"
)

// nodeFigures gathers what the parts of a node count and know. All of it is in memory.
type nodeFigures struct {
	name    string
	results *service.Results
	toggles *service.Toggles
	guard   *protection
}

func (n *node) figures() *nodeFigures {
	name, _ := n.cfg.Node() // newNode has asked before
	return &nodeFigures{name: name, results: n.results, toggles: n.toggles, guard: n.guard}
}

// Figures implements handler.NodeFigures.
func (f *nodeFigures) Figures() handler.NodeJSON {
	all := handler.NodeJSON{Node: f.name, Results: f.results.Counts(), TogglesFile: f.toggles.File()}
	f.guard.figures(&all, f.toggles.Breaker)
	return all
}
