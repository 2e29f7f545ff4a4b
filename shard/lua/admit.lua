-- admit: takes units of one share for a batch of requests.
--
-- KEYS     stock, buyer, order, journal of the share
-- ARGV[1]  epoch the callers believe in
-- ARGV[2]  1 to 128 requests, packed one behind the other:
--          id (16 bytes), quantity (2 bytes), limit (2 bytes), length of buyer (1 byte), buyer
-- RETURNS  integers:
--          {7}                             the share's keys are missing
--          {6, epoch, left, changes}       the share has another epoch or is sealed
--          {0, epoch, one row a request}   row: verdict, left, changes; after verdict 2 also the epoch, change and
--                                          quantity of the take that is there
--          verdicts are those of sale.Verdict; 16 is added to a refusal of a doubtful id
-- CALLER   lane.flush
--
-- Running it twice takes nothing twice: the second time the ids are known.

local GONE, STALE, DECIDED = 7, 6, 0
local ADMITTED, KNOWN, EMPTY, AT_LIMIT, NEAR_LIMIT, DOUBTFUL = 1, 2, 3, 4, 5, 16
local MAX_BATCH, HEAD = 128, 21
local byte, sub, match = string.byte, string.sub, string.match

local stock = redis.call('HMGET', KEYS[1], 'epoch', 'sealed', 'left', 'pending', 'changes')
if not stock[1] then
  return {GONE}
end
local left, pending, changes = tonumber(stock[3]), tonumber(stock[4]), tonumber(stock[5])
if stock[1] ~= ARGV[1] or stock[2] ~= '0' then
  return {STALE, tonumber(stock[1]), left, changes}
end

local batch = ARGV[2]
local ids, buyers, quantities, limits, n, at, size = {}, {}, {}, {}, 0, 1, #batch
while at <= size do
  local q1, q2, l1, l2, len = byte(batch, at + 16, at + 20)
  if n == MAX_BATCH or not len or len == 0 or at + HEAD + len - 1 > size then
    return redis.error_reply('ERR admit: malformed batch')
  end
  n = n + 1
  ids[n] = sub(batch, at, at + 15)
  quantities[n] = q1 * 256 + q2
  limits[n] = l1 * 256 + l2
  buyers[n] = sub(batch, at + HEAD, at + HEAD + len - 1)
  if quantities[n] == 0 then
    return redis.error_reply('ERR admit: malformed batch')
  end
  at = at + HEAD + len
end
if n == 0 then
  return redis.error_reply('ERR admit: malformed batch')
end

local entries = redis.call('HMGET', KEYS[3], unpack(ids))
local counts = redis.call('HMGET', KEYS[2], unpack(buyers))
local epoch = tonumber(ARGV[1])
local taken, units, undecided = {}, {}, {} -- what this batch did, by id and by buyer
local out, o = {DECIDED, epoch}, 2
local orders, order_n, touched = {}, 0, {}

for i = 1, n do
  local id, buyer, quantity = ids[i], buyers[i], quantities[i]
  local entry = taken[id] or entries[i]
  local state = entry and byte(entry)
  if state and state ~= 100 then -- 100 is 'd', doubtful
    local q, e, c = match(entry, '^.(%d+) (%d+)%.(%d+) ')
    out[o + 1], out[o + 2], out[o + 3] = KNOWN, left, changes
    out[o + 4], out[o + 5], out[o + 6] = tonumber(e), tonumber(c), tonumber(q)
    o = o + 6
  else
    local has, open = units[buyer], undecided[buyer]
    if not has then
      has, open = 0, 0
      if counts[i] then
        has, open = match(counts[i], '^(%d+):(%d+)$')
        has, open = tonumber(has), tonumber(open)
      end
      units[buyer], undecided[buyer] = has, open
    end
    local verdict = ADMITTED
    if has + quantity > limits[i] then
      verdict = AT_LIMIT
      if has - open + quantity <= limits[i] then
        verdict = NEAR_LIMIT
      end
    elseif left < quantity then
      verdict = EMPTY
    end
    if verdict == ADMITTED then
      left, pending, changes = left - quantity, pending + quantity, changes + 1
      units[buyer], undecided[buyer], touched[buyer] = has + quantity, open + quantity, true
      entry = 'p' .. quantity .. ' ' .. ARGV[1] .. '.' .. changes .. ' ' .. buyer
      taken[id] = entry
      orders[order_n + 1], orders[order_n + 2] = id, entry
      order_n = order_n + 2
    elseif state then
      verdict = verdict + DOUBTFUL
    end
    out[o + 1], out[o + 2], out[o + 3] = verdict, left, changes
    o = o + 3
  end
end

if order_n > 0 then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local journal, rows = {}, {}
  for i = 1, order_n, 2 do
    journal[i], journal[i + 1] = now, orders[i]
  end
  for buyer in pairs(touched) do
    rows[#rows + 1] = buyer
    rows[#rows + 1] = units[buyer] .. ':' .. undecided[buyer]
  end
  -- The journal goes first: it is the one key that was not read above, so a wrong type fails before anything changed.
  redis.call('ZADD', KEYS[4], unpack(journal))
  redis.call('HSET', KEYS[3], unpack(orders))
  redis.call('HSET', KEYS[2], unpack(rows))
  redis.call('HSET', KEYS[1], 'left', left, 'pending', pending, 'changes', changes)
end
return out
