-- Makes a cold day warm: what the record says, plus the holds that are open now.
-- KEYS epoch, leases, account, key, events, then the holds of each gateway named in ARGV[11..]
-- ARGV 1 nonce, 2 account, 3 key, 4 version, 5 day, 6 used, 7 used by the key, 8 hang-ups (these count the ledger
--      and the stream up to `last`), 9 last stream id seen, 10 clock offset ms, 11.. gateways
local nonce, day = ARGV[1], tonumber(ARGV[5])
local u = 'u' .. ARGV[5]
if redis.call('HGET', KEYS[1], 'nonce') ~= nonce then return 'epoch' end
local account = redis.call('HMGET', KEYS[3], 'n', 'v', 'seeded', u)
local key = redis.call('HMGET', KEYS[4], 'n', 'seeded', u)
local function knows(n, seeded, count)
  return n == nonce and (count or (seeded and day > tonumber(seeded))) and true or false
end
local account_warm = knows(account[1], account[3], account[4])
local key_warm = knows(key[1], key[2], key[3])
if account_warm and key_warm then return 'warm' end

-- The caller read leases and stream a moment ago; what came since sends it to read again.
local named = {}
for i = 11, #ARGV do named[ARGV[i]] = true end
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

local open, fares, key_fares = 0, 0, 0
for i = 6, #KEYS do
  for _, packed in ipairs(redis.call('HVALS', KEYS[i])) do
    if string.find(packed, ARGV[2], 1, true) then
      local hold = cjson.decode(packed)
      if hold[9] == nonce and hold[1] == ARGV[2] then
        open = open + 1
        if hold[3] == day then
          fares = fares + hold[4]
          if hold[2] == ARGV[3] then key_fares = key_fares + hold[4] end
        end
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
if not key_warm then seed(KEYS[4], key[1], key[2], tonumber(ARGV[7]) + key_fares) end
return 'seeded'
