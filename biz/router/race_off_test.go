//go:build !race

package router

const poolSlack = 0
