-- drop: deletes a sealed share. UNLINK frees big hashes outside of the main thread.
--
-- KEYS     stock, buyer, order, journal of the share
-- ARGV     epoch of the reshare
-- RETURNS  integers: {6} another epoch, or not sealed · {0} nothing is left, or was there
-- CALLER   Gate.Drop

local CONFLICT, DONE = 6, 0

local stock = redis.call('HMGET', KEYS[1], 'epoch', 'sealed')
if stock[1] and (stock[1] ~= ARGV[1] or stock[2] ~= '1') then
  return {CONFLICT}
end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
return {DONE}
