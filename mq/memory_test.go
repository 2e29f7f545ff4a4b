package mq_test

import (
	"testing"

	"stockade/mq/mqtest"
)

func TestMemoryBroker(t *testing.T) { mqtest.Run(t, mqtest.NewMemoryLab) }
