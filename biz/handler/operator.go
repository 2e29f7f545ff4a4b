package handler

import (
	"github.com/cloudwego/hertz/pkg/app"

	"stockade/biz/auth"
)

const operatorKey = "stockade.operator"

// SetOperator notes who makes this request of the admin API.
func SetOperator(c *app.RequestContext, who auth.Operator) { c.Set(operatorKey, who) }

// Operator is who makes this request of the admin API; the zero Operator on the public listener.
func Operator(c *app.RequestContext) auth.Operator {
	who, _ := c.Get(operatorKey)
	operator, _ := who.(auth.Operator)
	return operator
}
