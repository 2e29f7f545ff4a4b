# shellcheck shell=bash
# RabbitMQ with an Erlang port mapper, cookie and node name of its own, so that
# it neither meets nor disturbs another broker on this machine.

# Not /usr/sbin/rabbitmq-server: that one changes to the user rabbitmq, who may
# not be able to reach the checkout.
readonly rabbitmq_program=/usr/lib/rabbitmq/bin/rabbitmq-server

rabbitmq_serve() {
  local dir=$run/rabbitmq
  : >"$dir/rabbitmq-env.conf" # in place of the one in /etc
  echo '[].' >"$dir/enabled_plugins"
  cat >"$dir/rabbitmq.conf" <<CONF
listeners.tcp.1 = 127.0.0.1:$amqp_port
log.console = true
log.console.level = info
log.file = false
disk_free_limit.absolute = 50MB
raft.wal_max_size_bytes = 67108864
CONF
  export HOME=$dir # holds the Erlang cookie
  export ERL_EPMD_PORT=$epmd_port ERL_EPMD_ADDRESS=127.0.0.1
  export RABBITMQ_CONF_ENV_FILE=$dir/rabbitmq-env.conf
  export RABBITMQ_CONFIG_FILE=$dir/rabbitmq.conf
  export RABBITMQ_ADVANCED_CONFIG_FILE=$dir/advanced.config
  export RABBITMQ_ENABLED_PLUGINS_FILE=$dir/enabled_plugins
  export RABBITMQ_NODENAME=stockade@localhost
  export RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT=$amqp_port
  export RABBITMQ_DIST_PORT=$dist_port
  export RABBITMQ_MNESIA_BASE=$dir/mnesia RABBITMQ_LOG_BASE=$dir/logs
  export RABBITMQ_FEATURE_FLAGS_FILE=$dir/feature_flags
  export RABBITMQ_PLUGINS_EXPAND_DIR=$dir/plugins-expand
  export RABBITMQ_PID_FILE=$dir/rabbitmq.pid
  export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='-kernel inet_dist_use_interface {127,0,0,1}'
  exec "$rabbitmq_program"
}

rabbitmq_answers() {
  # A protocol header is answered by a method frame (type 1, channel 0) once
  # the node has started whole: it opens its listeners last.
  [[ $(first_bytes "$amqp_port" 'AMQP\x00\x00\x09\x01' 3) == " 01 00 00" ]]
}
