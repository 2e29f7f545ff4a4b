-- wipe: empties a sealed share. UNLINK frees big hashes outside of the main thread.
--
-- KEYS     stock, buyer, order, journal of the share
-- ARGV     epoch of the reshare
-- RETURNS  integers: {7} keys missing · {6} not sealed at this epoch · {0}
-- CALLER   Gate.Wipe

local GONE, CONFLICT, DONE = 7, 6, 0

local stock = redis.call('HMGET', KEYS[1], 'epoch', 'sealed')
if not stock[1] then
  return {GONE}
end
if stock[1] ~= ARGV[1] or stock[2] ~= '1' then
  return {CONFLICT}
end
redis.call('UNLINK', KEYS[2], KEYS[3], KEYS[4])
redis.call('HDEL', KEYS[1], 'short')
redis.call('HSET', KEYS[1], 'left', 0, 'pending', 0, 'initial', 0, 'blank', 1)
return {DONE}
