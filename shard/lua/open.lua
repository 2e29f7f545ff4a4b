-- open: sets what is left in a sealed share and lets it admit. Opening again at the same epoch changes nothing, because
-- units may have been sold since.
--
-- KEYS     stock, buyer, order, journal of the share
-- ARGV     epoch of the reshare, units left
-- RETURNS  integers: {7} keys missing · {6} another epoch, or takes are undecided · {0}
-- CALLER   Gate.Open

local GONE, CONFLICT, DONE = 7, 6, 0

local left = tonumber(ARGV[2])
if not left or left < 0 then
  return redis.error_reply('ERR open: malformed')
end
local stock = redis.call('HMGET', KEYS[1], 'epoch', 'sealed', 'changes')
if not stock[1] then
  return {GONE}
end
if stock[1] ~= ARGV[1] then
  return {CONFLICT}
end
if stock[2] ~= '1' then
  return {DONE}
end
if redis.call('ZCARD', KEYS[4]) > 0 then
  return {CONFLICT}
end
redis.call('HDEL', KEYS[1], 'blank', 'before', 'short')
redis.call('HSET', KEYS[1], 'sealed', 0, 'left', ARGV[2], 'initial', ARGV[2], 'pending', 0,
  'changes', tonumber(stock[3]) + 1)
return {DONE}
