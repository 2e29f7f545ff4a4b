-- credit: gives a closed order's units and its buyer's count back, once. The id stays known as closed.
--
-- KEYS     stock, buyer, order, journal of the share
-- ARGV     epoch, order id (16 bytes), quantity, buyer
-- RETURNS  integers: {7} keys missing · {6, epoch} the share has another epoch or is sealed · {0, 1 when units went back}
-- CALLER   Gate.Credit

local GONE, STALE, DONE = 7, 6, 0
local id, quantity, buyer = ARGV[2], tonumber(ARGV[3]), ARGV[4]

if not epoch then
  return {GONE}
end
if epoch ~= ARGV[1] or sealed then
  return {STALE, tonumber(epoch)}
end
if #id ~= 16 or not quantity or quantity < 1 or not buyer then
  return redis.error_reply('ERR credit: malformed')
end

load({id})
local entry = entries[id]
local back = 0
if not entry then
  -- The share forgot this order, and with it the buyer's count: only the units are missing.
  entries[id] = {state = 'c', quantity = quantity, token = '0.0', buyer = buyer}
  left, changes, back = left + quantity, changes + 1, 1
  dirty_ids[id] = true
elseif entry.state == 'd' then
  become(id, entry, 'c') -- its units came back when it was dropped
elseif entry.state ~= 'c' then
  give_back(entry)
  become(id, entry, 'c')
  back = 1
end
save()
return {DONE, back}
