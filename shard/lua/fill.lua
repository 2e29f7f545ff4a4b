-- fill: loads orders into a sealed share. Live ones count for their buyer; closed ones are only known, but their buyer
-- gets a field too, to be found among those who ever held units. Ids that are there are left alone, which makes a
-- repetition harmless.
--
-- KEYS     stock, buyer, order, journal of the share
-- ARGV[1]  epoch of the reshare
-- ARGV[2]  1 to 500 orders, packed one behind the other: id (16 bytes), quantity (2 bytes), 1 for closed (1 byte),
--          length of token (1 byte), length of buyer (1 byte), token, buyer
-- RETURNS  integers: {7} keys missing · {6} not sealed at this epoch · {0, number of orders loaded}
-- CALLER   Gate.Fill

local GONE, CONFLICT, DONE = 7, 6, 0
local MAX_BATCH, HEAD = 500, 21
local byte, sub, match = string.byte, string.sub, string.match
local format = string.format -- writes whole numbers; .. writes them as floats, which takes much longer

local stock = redis.call('HMGET', KEYS[1], 'epoch', 'sealed')
if not stock[1] then
  return {GONE}
end
if stock[1] ~= ARGV[1] or stock[2] ~= '1' then
  return {CONFLICT}
end

local batch = ARGV[2]
local ids, buyers, rows, n, at, size = {}, {}, {}, 0, 1, #batch
while at <= size do
  local q1, q2, closed, tlen, blen = byte(batch, at + 16, at + 20)
  if n == MAX_BATCH or not blen or tlen == 0 or blen == 0 or at + HEAD + tlen + blen - 1 > size then
    return redis.error_reply('ERR fill: malformed batch')
  end
  n = n + 1
  local from = at + HEAD
  ids[n] = sub(batch, at, at + 15)
  buyers[n] = sub(batch, from + tlen, from + tlen + blen - 1)
  rows[n] = {quantity = q1 * 256 + q2, closed = closed == 1, token = sub(batch, from, from + tlen - 1)}
  at = from + tlen + blen
end
if n == 0 then
  return redis.error_reply('ERR fill: malformed batch')
end

local known = redis.call('HMGET', KEYS[3], unpack(ids))
local had = redis.call('HMGET', KEYS[2], unpack(buyers))
local units, undecided, orders, loaded = {}, {}, {}, {}
for i, row in ipairs(rows) do
  local id, buyer = ids[i], buyers[i]
  if not known[i] and not loaded[id] then
    loaded[id] = true
    if not units[buyer] then
      local u, p = match(had[i] or '0:0', '^(%d+):(%d+)$')
      units[buyer], undecided[buyer] = tonumber(u), p
    end
    if not row.closed then
      units[buyer] = units[buyer] + row.quantity
    end
    orders[#orders + 1] = id
    orders[#orders + 1] = format('%s%d %s ', row.closed and 'c' or 'k', row.quantity, row.token) .. buyer
  end
end
if #orders > 0 then
  local fields = {}
  for buyer, u in pairs(units) do
    fields[#fields + 1] = buyer
    fields[#fields + 1] = format('%d:%s', u, undecided[buyer])
  end
  redis.call('HSET', KEYS[3], unpack(orders))
  redis.call('HSET', KEYS[2], unpack(fields))
end
return {DONE, #orders / 2}
