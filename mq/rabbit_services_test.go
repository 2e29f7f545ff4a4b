//go:build services

package mq_test

import (
	"testing"

	"stockade/mq"
	"stockade/mq/mqtest"
)

func TestRabbitQuorum(t *testing.T) { mqtest.Run(t, mqtest.NewRabbitLab(mq.QueueQuorum)) }

func TestRabbitClassic(t *testing.T) { mqtest.Run(t, mqtest.NewRabbitLab(mq.QueueClassic)) }
