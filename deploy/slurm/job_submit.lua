-- Coppice's part of Slurm's job submission: gives coppice-slurm a moment to choose a job's nodes.
--
-- Slurm calls this with its job lock held, so nothing here may wait: no daemon is asked. A job that
-- may be steered is only told to begin some seconds later. Within these coppice-slurm chooses nodes
-- and lets it begin at once; if it does not, the job begins as Slurm sees fit.
-- Nothing is delayed unless coppice-slurm wrote down, some seconds ago at most, that both it and the
-- daemon are there.
--
-- Installed as it is: copy to where slurm.conf is, and JobSubmitPlugins=lua. Beside a job_submit.lua of
-- the site's own: dofile() this file there and call coppice_job_submit(job_desc) last.

local STEERING = os.getenv("COPPICE_SLURM_STEERING") or "/run/coppice-slurm/steering"

-- "UNTIL SECONDS": steering goes on until then, and takes so long at most.
local function steering_seconds()
  local file = io.open(STEERING, "r")
  if file == nil then
    return nil
  end
  local till, seconds = file:read("*n", "*n")
  file:close()
  if till == nil or seconds == nil or os.time() > till then
    return nil
  end
  return math.floor(seconds)
end

local function is_given(text)
  return text ~= nil and text ~= ""
end

-- Whom nobody told where or when to run.
local function is_free(job)
  return (job.begin_time == nil or job.begin_time == 0)
    and job.priority ~= 0
    and not is_given(job.req_nodes)
    and not is_given(job.dependency)
    and not is_given(job.reservation)
    and not is_given(job.array_inx)
    and not is_given(job.admin_comment)
end

function coppice_job_submit(job)
  local seconds = is_free(job) and steering_seconds() or nil
  if seconds ~= nil then
    job.begin_time = os.time() + seconds
    job.admin_comment = "coppice-steer"
  end
  return slurm.SUCCESS
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  return coppice_job_submit(job_desc)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
