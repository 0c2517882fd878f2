-- Makes a cold day warm, and what is used of packs: what the record says, plus the holds that are open now.
-- KEYS epoch, leases, account, key, events, then the holds of each gateway named in ARGV[14..]
-- ARGV 1 nonce, 2 account, 3 key, 4 version, 5 day, 6 used, 7 used by the key, 8 hang-ups, 9 last stream id seen, 10 clock
--      offset ms, 11 month (0: packs don't matter), 12 used of packs, 13 in that month (all of these count the ledger and the
--      stream up to `last`), 14.. gateways
local nonce, day, month = ARGV[1], tonumber(ARGV[5]), tonumber(ARGV[11])
local u, c = 'u' .. ARGV[5], 'c' .. ARGV[11]
if redis.call('HGET', KEYS[1], 'nonce') ~= nonce then return 'epoch' end
local account = redis.call('HMGET', KEYS[3], 'n', 'v', 'seeded', u, 'b', c)
local key = redis.call('HMGET', KEYS[4], 'n', 'seeded', u)
local function knows(n, seeded, count)
  return n == nonce and (count or (seeded and day > tonumber(seeded))) and true or false
end
local account_warm = knows(account[1], account[3], account[4])
local key_warm = knows(key[1], key[2], key[3])
local knows_used, knows_month = account[1] == nonce and account[5], account[1] == nonce and account[6]
local packs_warm = month == 0 or (knows_used and knows_month)
if account_warm and key_warm and packs_warm then return 'warm' end

-- The caller read leases and stream a moment ago; what came since sends it to read again.
local named = {}
for i = 14, #ARGV do named[ARGV[i]] = true end
for _, gateway in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  if not named[gateway] then return 'again' end
end
local newer = redis.call('XRANGE', KEYS[5], '(' .. ARGV[9], '+', 'COUNT', 1000)
if #newer == 1000 then return 'again' end
for _, entry in ipairs(newer) do
  for _, field in ipairs(entry[2]) do
    if string.find(field, ARGV[2], 1, true) then return 'again' end
  end
end

local open, fares, key_fares, pack_fares, month_fares = 0, 0, 0, 0, 0
for i = 6, #KEYS do
  for _, packed in ipairs(redis.call('HVALS', KEYS[i])) do
    if string.find(packed, ARGV[2], 1, true) then
      local hold = cjson.decode(packed)
      if hold[9] == nonce and hold[1] == ARGV[2] then
        open = open + 1
        if hold[3] == day and not hold[10] then fares = fares + hold[4] end
        if hold[3] == day and hold[2] == ARGV[3] then key_fares = key_fares + hold[4] end
        if hold[10] then pack_fares = pack_fares + hold[4] end
        if hold[10] == month then month_fares = month_fares + hold[4] end
      end
    end
  end
end

-- Days after `seeded` count from 0, so it must not be younger than any day on which an id can exist already.
local t = redis.call('TIME')
local today = math.floor((t[1] * 1000 + tonumber(ARGV[10]) + 60000) / 86400000)
local function seed(hash, n, seeded, count)
  if n ~= nonce then redis.call('DEL', hash) end
  local until_day = math.max(n == nonce and tonumber(seeded or 0) or 0, today, day)
  redis.call('HSET', hash, 'n', nonce, 'seeded', until_day, u, count)
  redis.call('EXPIRE', hash, 259200)
end
if not account_warm then
  seed(KEYS[3], account[1], account[3], tonumber(ARGV[6]) + fares)
  redis.call('HSET', KEYS[3], 'g' .. ARGV[5], ARGV[8], 'open', open,
    'v', math.max(tonumber(account[2] or 0), tonumber(ARGV[4])))
end
if not packs_warm then
  if not knows_used then redis.call('HSET', KEYS[3], 'b', tonumber(ARGV[12]) + pack_fares) end
  if not knows_month then redis.call('HSET', KEYS[3], c, tonumber(ARGV[13]) + month_fares) end
  for _, field in ipairs(redis.call('HKEYS', KEYS[3])) do
    local old = string.match(field, '^c(%d+)$')
    if old and tonumber(old) < month - 1 then redis.call('HDEL', KEYS[3], field) end
  end
end
if not key_warm then seed(KEYS[4], key[1], key[2], tonumber(ARGV[7]) + key_fares) end
return 'seeded'
