-- credit: gives closed orders' units and their buyers' counts back, each once. Their ids stay known as closed.
--
-- KEYS     stock, buyer, order, journal of the share
-- ARGV[1]  epoch that the share must have
-- ARGV[2]  1 to 128 orders, packed one behind the other:
--          id (16 bytes), quantity (2 bytes), 1 when the units are laid out already and only the buyer's count comes
--          back, else 0 (1 byte), length of buyer (1 byte), buyer
-- RETURNS  integers: {7} keys missing · {6} the share has another epoch or is sealed · {0, number of orders whose units
--          came back now}
-- CALLER   Gate.Credit

local GONE, STALE, DONE = 7, 6, 0
local MAX_BATCH, HEAD = 128, 20

if not epoch then
  return {GONE}
end
if epoch ~= ARGV[1] or sealed then
  return {STALE}
end

local batch = ARGV[2]
local ids, quantities, counted, buyers, n, at, size = {}, {}, {}, {}, 0, 1, #batch
while at <= size do
  local q1, q2, laid, len = byte(batch, at + 16, at + 19)
  if n == MAX_BATCH or not len or len == 0 or q1 + q2 == 0 or at + HEAD + len - 1 > size then
    return redis.error_reply('ERR credit: malformed batch')
  end
  n = n + 1
  ids[n], quantities[n], counted[n] = sub(batch, at, at + 15), q1 * 256 + q2, laid == 1
  buyers[n] = sub(batch, at + HEAD, at + HEAD + len - 1)
  at = at + HEAD + len
end
if n == 0 then
  return redis.error_reply('ERR credit: malformed batch')
end

load(ids)
local back = 0
for i = 1, n do
  local id, entry = ids[i], entries[ids[i]]
  if not entry then
    -- The share forgot this order, and with it the buyer's count: only the units are missing.
    entries[id] = {state = 'c', quantity = quantities[i], token = '0.0', buyer = buyers[i]}
    dirty_ids[id] = true
    if not counted[i] then
      add(quantities[i])
      back = back + 1
    end
  elseif entry.state == 'd' then
    become(id, entry, 'c') -- its units came back when it was dropped
  elseif counted[i] and entry.state == 'k' then
    counts[entry.buyer].units = math.max(0, counts[entry.buyer].units - entry.quantity)
    dirty_buyers[entry.buyer] = true
    changes = changes + 1
    become(id, entry, 'c')
  elseif counted[i] then
    -- closed already, or taken anew since: that take is told by itself
  elseif entry.state ~= 'c' then
    give_back(entry)
    become(id, entry, 'c')
    back = back + 1
  end
end
save()
return {DONE, back}
